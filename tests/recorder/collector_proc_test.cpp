#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "recorder/collector/elf_file.h"
#include "recorder/collector/modules.h"
#include "recorder/collector/proc.h"

namespace heaptape::collector {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

TEST(ProcMaps, LinesThatMapFilesAreReadAndAllOthersPassedOver) {
  const auto maps = parse_maps(
      "55d0c0000000-55d0c0001000 r--p 00000000 08:01 131 /usr/bin/a b\n"
      "55d0c0001000-55d0c0002000 r-xp 00001000 08:01 131 /usr/bin/a b\n"
      "55d0c0002000-55d0c0003000 rw-p 00000000 00:00 0 [heap]\n"
      "garbage\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:01 7 /memfd:x (deleted)\n"
      "7f0000002000-7f0000001000 r-xp 00000000 08:01 7 /backwards\n"
      "7fff00000000-7fff00001000 r-xp");
  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[0].path, "/usr/bin/a b");
  EXPECT_FALSE(maps[0].executable);
  EXPECT_TRUE(maps[1].executable);
  EXPECT_EQ(maps[1].offset, 0x1000U);
  EXPECT_EQ(maps[1].inode, 131U);
  EXPECT_EQ(maps[2].start, 0x7f0000000000U);
}

TEST(ProgramName, AShortenedNameIsCompletedFromArgumentsOrPath) {
  EXPECT_EQ(full_program_name("sh", "/usr/bin/dash", {"sh"}), "sh");
  EXPECT_EQ(full_program_name("a-very-long-nam", "/bin/python3", {"python3", "./a-very-long-name.py"}),
            "a-very-long-name.py");
  EXPECT_EQ(full_program_name("a-very-long-nam", "/bin/a-very-long-name", {"x"}), "a-very-long-name");
  EXPECT_EQ(full_program_name("fifteen-letters", "/bin/other", {}), "fifteen-letters");
  EXPECT_EQ(full_program_name("", "/bin/other", {}), "other");
}

TEST(Proc, ThisProcessIsReadAsItIs) {
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_TRUE(thread_exists(::getpid(), ::getpid()));
  EXPECT_FALSE(command_line(::getpid()).empty());
  EXPECT_GT(memory_use(::getpid()).value().resident_bytes, 0U);
  EXPECT_NE(executable_identity(::getpid()), 0U);
}

TEST(Proc, ThreadsAreFoundByTheirNumbersInTheInnermostNamespace) {
  EXPECT_THAT(threads_by_inner_number(::getpid()), testing::Contains(static_cast<std::uint32_t>(::getpid())));
  EXPECT_TRUE(threads_by_inner_number(0x7fffffff).empty());
}

TEST(Proc, AProcessThatIsGoneYieldsNothing) {
  constexpr pid_t none = 0x7fffffff;
  EXPECT_EQ(parent_of(none), 0);
  EXPECT_FALSE(thread_exists(none, none));
  EXPECT_TRUE(file_mappings(none).empty());
  EXPECT_FALSE(memory_use(none));
  EXPECT_EQ(executable_path(none), "");
}

TEST(Modules, EachFileIsToldOnceAndTheCLibraryServesMalloc) {
  ElfCache files;
  Modules modules("/preload.so", files);
  const auto fresh = modules.update(::getpid());
  EXPECT_THAT(fresh, Contains(Field(&format::ModuleInfo::path, HasSubstr("libc.so"))));
  EXPECT_THAT(fresh, Contains(Field(&format::ModuleInfo::path, executable_path(::getpid()))));
  EXPECT_TRUE(modules.update(::getpid()).empty());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(modules.allocator(), HasSubstr("libc.so"));
#endif
  for (const auto& m : fresh) {
    if (m.path.find("libc.so") != std::string::npos) {
      EXPECT_EQ(m.build_id.size(), 40U) << m.path;  // Debian gives every library a SHA-1 build id
      EXPECT_EQ(m.load_bias, m.load_address);
    }
  }
}

TEST(ElfFile, AnythingElseIsNoElfFile) {
  EXPECT_FALSE(read_elf("/etc/passwd").is_elf);
  EXPECT_FALSE(read_elf("/dev/zero").is_elf);
  EXPECT_FALSE(read_elf("/").is_elf);
  const ElfFacts own = read_elf("/proc/self/exe");
  EXPECT_TRUE(own.is_elf && own.same_class && own.dynamic);
}

}  // namespace
}  // namespace heaptape::collector
