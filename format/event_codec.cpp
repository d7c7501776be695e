#include "format/event_codec.h"

#include <bit>
#include <limits>

namespace heaptape::format {
namespace {

constexpr std::uint8_t other_alignment = 255;
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

// Blocks are aligned to 8 bytes nearly always: the low bits go where zigzag and varint do not see them.
constexpr int aligned_bits = 3;

}  // namespace

void put_alignment(ByteSink& sink, std::uint64_t alignment) noexcept {
  if (alignment == 0) {
    sink.put_byte(0);
  } else if (std::has_single_bit(alignment)) {
    sink.put_byte(static_cast<std::uint8_t>(1 + std::countr_zero(alignment)));
  } else {
    sink.put_byte(other_alignment);
    sink.put(alignment);
  }
}

std::uint64_t get_alignment(ByteSource& source) noexcept {
  const std::uint8_t code = source.get_byte();
  if (code == 0) {
    return 0;
  }
  if (code <= 64) {
    return std::uint64_t{1} << (code - 1);
  }
  return source.get();
}

void SiteWriter::start() {
  known_.clear();
  buckets_.assign(256, 0);
}

std::size_t SiteWriter::bucket(std::uint64_t site) const noexcept {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t i = static_cast<std::size_t>((site * golden) >> 32) & mask;
  while (buckets_[i] != 0 && known_[buckets_[i] - 1] != site) {
    i = (i + 1) & mask;
  }
  return i;
}

void SiteWriter::grow() {
  buckets_.assign(buckets_.size() * 2, 0);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    buckets_[bucket(known_[i])] = static_cast<std::uint32_t>(i + 1);
  }
}

void SiteWriter::put(ByteSink& sink, SiteId id) {
  const auto site = static_cast<std::uint64_t>(id);
  if (id == SiteId::none) {
    sink.put(0);
    return;
  }
  const std::size_t i = bucket(site);
  if (buckets_[i] != 0) {
    sink.put(buckets_[i]);
    return;
  }
  sink.put(known_.size() + 1);
  sink.put(zigzag(site - (known_.empty() ? 0 : known_.back())));
  known_.push_back(site);
  buckets_[i] = static_cast<std::uint32_t>(known_.size());
  if (known_.size() * 2 > buckets_.size()) {
    grow();
  }
}

SiteId SiteReader::get(ByteSource& source) {
  const std::uint64_t code = source.get();
  if (code == 0) {
    return SiteId::none;
  }
  if (code <= known_.size()) {
    return SiteId{known_[code - 1]};
  }
  if (code != known_.size() + 1) {
    bad_ = true;
    return SiteId::none;
  }
  known_.push_back((known_.empty() ? 0 : known_.back()) + unzigzag(source.get()));
  return SiteId{known_.back()};
}

void AddressWriter::start(std::size_t max_addresses) {
  if (history_.size() < max_addresses) {
    history_.resize(max_addresses);
  }
  if (max_addresses + count_ >= std::numeric_limits<std::uint32_t>::max() - base_) {
    table_.fill(0);
    base_ = 1;
  } else {
    base_ += static_cast<std::uint32_t>(count_);
  }
  count_ = 0;
  last_new_ = 0;
}

void AddressWriter::put(ByteSink& references, ByteSink& new_addresses, std::uint64_t address) noexcept {
  if (address == 0) {
    references.put_byte(0);
    return;
  }
  const std::uint64_t turned = std::rotr(address, aligned_bits);
  std::uint32_t& entry = table_[(turned * golden) >> (64 - table_bits)];
  const std::size_t position = static_cast<std::size_t>(entry) - base_;
  if (entry >= base_ && history_[position] == address) {
    references.put(1 + count_ - position);
  } else {
    references.put_byte(1);
    new_addresses.put(zigzag(turned - last_new_));
    last_new_ = turned;
  }
  entry = base_ + static_cast<std::uint32_t>(count_);
  history_[count_++] = address;
}

void AddressReader::start(std::size_t max_addresses) {
  if (history_.size() < max_addresses) {
    history_.resize(max_addresses);
  }
  count_ = 0;
  last_new_ = 0;
  bad_ = false;
}

std::uint64_t AddressReader::get(ByteSource& references, ByteSource& new_addresses) noexcept {
  const std::uint64_t code = references.get();
  if (code == 0) {
    return 0;
  }
  std::uint64_t address = 0;
  if (code == 1) {
    last_new_ += unzigzag(new_addresses.get());
    address = std::rotl(last_new_, aligned_bits);
  } else if (code - 1 <= count_) {
    address = history_[count_ - (code - 1)];
  } else {
    bad_ = true;
    return 0;
  }
  history_[count_++] = address;
  return address;
}

}  // namespace heaptape::format
