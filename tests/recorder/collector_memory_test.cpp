#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/collector/shared_memory.h"

namespace heaptape::collector {
namespace {

TEST(SharedMemory, ItsSizeIsSealedForEverAndItsBytesAreZero) {
  const SharedMemory memory = SharedMemory::create(1 << 20).value();
  EXPECT_EQ(memory.bytes().size(), std::size_t{1 << 20});
  EXPECT_NE(::ftruncate(memory.fd(), 4096), 0);
  EXPECT_NE(::ftruncate(memory.fd(), 2 << 20), 0);
  EXPECT_NE(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(::fcntl(memory.fd(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedMemory, OnlyAllocatedPartsTakePages) {
  SharedMemory memory = SharedMemory::create(512U << 20).value();
  struct stat before {};
  ASSERT_EQ(::fstat(memory.fd(), &before), 0);
  EXPECT_EQ(before.st_blocks, 0);
  ASSERT_TRUE(memory.allocate(1 << 20, 128 << 10));
  struct stat after {};
  ASSERT_EQ(::fstat(memory.fd(), &after), 0);
  EXPECT_EQ(after.st_blocks * 512, 128 << 10);
  EXPECT_EQ(memory.bytes()[1 << 20], std::byte{0});
}

TEST(SharedMemory, AnotherMappingSeesTheSameBytes) {
  SharedMemory memory = SharedMemory::create(8192).value();
  ASSERT_TRUE(memory.allocate(0, 8192));
  void* other = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  static_cast<char*>(other)[5000] = 42;
  EXPECT_EQ(memory.bytes()[5000], std::byte{42});
  ::munmap(other, 8192);
}

TEST(SharedMemory, WhatTheSystemRefusesIsAnError) {
  const auto result = SharedMemory::create(std::size_t{1} << 62);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), format::ExitCode::system);
}

}  // namespace
}  // namespace heaptape::collector
