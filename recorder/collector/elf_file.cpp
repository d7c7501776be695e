#include "recorder/collector/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "format/base/descriptor.h"

namespace heaptape::collector {

namespace {

using ElfHandle = std::unique_ptr<Elf, int (*)(Elf*)>;

GElf_Half own_machine() {
  static const GElf_Half machine = [] {  // of the running program, whatever it was built for
    const format::Descriptor self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    const ElfHandle elf(elf_begin(self.get(), ELF_C_READ, nullptr), elf_end);
    GElf_Ehdr header{};
    return elf && gelf_getehdr(elf.get(), &header) != nullptr ? header.e_machine : GElf_Half{EM_NONE};
  }();
  return machine;
}

void read_notes(Elf* elf, const GElf_Phdr& segment, ElfFacts& facts) {
  Elf_Data* data = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.p_offset), segment.p_filesz,
                                        segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
  GElf_Nhdr note{};
  std::size_t name = 0;
  std::size_t description = 0;
  std::size_t offset = 0;
  while (data != nullptr && (offset = gelf_getnote(data, offset, &note, &name, &description)) > 0) {
    const auto* bytes = static_cast<const unsigned char*>(data->d_buf);
    const std::string_view owner(reinterpret_cast<const char*>(bytes) + name, note.n_namesz);
    if (owner.starts_with("Go")) {
      facts.go = true;
    }
    if (note.n_type == NT_GNU_BUILD_ID && owner == std::string_view("GNU\0", 4) && note.n_descsz <= 64) {
      facts.build_id.clear();
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        facts.build_id += fmt::format("{:02x}", bytes[description + i]);
      }
    }
  }
}

bool exports_malloc(Elf* elf) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM || header.sh_entsize == 0) {
      continue;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    const auto symbols = static_cast<int>(data != nullptr ? data->d_size / header.sh_entsize : 0);
    for (int i = 0; i < symbols; ++i) {
      GElf_Sym symbol{};
      if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) {
        continue;
      }
      const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name != nullptr && std::strcmp(name, "malloc") == 0) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

ElfFacts read_elf(const std::string& path) {
  ElfFacts facts;
  elf_version(EV_CURRENT);
  const format::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return facts;
  }
  const ElfHandle elf(elf_begin(file.get(), ELF_C_READ, nullptr), elf_end);
  GElf_Ehdr header{};
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr) {
    return facts;
  }
  facts.is_elf = true;
  constexpr int own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  facts.same_class = gelf_getclass(elf.get()) == own_class && header.e_machine == own_machine();
  std::size_t segments = 0;
  bool loaded = false;
  if (elf_getphdrnum(elf.get(), &segments) != 0) {
    return facts;
  }
  for (std::size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr) {
      break;
    }
    if (segment.p_type == PT_INTERP) {
      facts.dynamic = true;
    } else if (segment.p_type == PT_NOTE) {
      read_notes(elf.get(), segment, facts);
    } else if (segment.p_type == PT_LOAD && !loaded) {
      loaded = true;
      const GElf_Xword align = segment.p_align > 1 ? segment.p_align : 1;
      facts.first_address = segment.p_vaddr - segment.p_vaddr % align;
    }
  }
  facts.defines_malloc = exports_malloc(elf.get());
  return facts;
}

const ElfFacts& ElfCache::facts(const std::string& path, const struct stat& status) {
  constexpr std::size_t most_files = 4096;
  const Key key{status.st_dev, status.st_ino, status.st_size,
                std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
  const auto found = known_.find(key);
  if (found != known_.end()) {
    return found->second;
  }
  if (known_.size() >= most_files) {
    known_.clear();
  }
  return known_.emplace(key, read_elf(path)).first->second;
}

}  // namespace heaptape::collector
