#include "format/block.h"

#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <random>
#include <vector>

namespace heaptape::format {
namespace {

TEST(Block, ChecksumsAreThoseOfBoostsCastagnoliCrc) {
  const std::string digits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits))), 0xe3069283U);
  std::mt19937_64 random(1);
  for (std::size_t size = 0; size < 300; ++size) {
    std::vector<std::uint8_t> bytes(size);
    for (auto& b : bytes) {
      b = static_cast<std::uint8_t>(random());
    }
    boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true> oracle;
    oracle.process_bytes(bytes.data(), bytes.size());
    ASSERT_EQ(crc32c(std::as_bytes(std::span(bytes))), oracle.checksum()) << size << " bytes";
  }
}

TEST(Block, HeadersComeBackAsWritten) {
  const BlockHeader header{BlockKind::gap, 200, 7, 0xfffffff8, 0xfedcba9876543210, 0x89abcdef};
  EXPECT_EQ(decode_block_header(encode_block_header(header)), header);
}

TEST(Block, AHeaderWithAnyBitFlippedIsNone) {
  const auto good = encode_block_header({BlockKind::header, 1, 0, 64, 3, 5});
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(decode_block_header(bad)) << "bit " << bit;
  }
}

}  // namespace
}  // namespace heaptape::format
