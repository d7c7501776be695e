// What the tests of tapes share: a temporary folder, random events, whole tapes as structs.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "format/event_codec.h"
#include "format/reader.h"
#include "format/writer.h"

namespace heaptape::format {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "heaptape-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), name);
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

using Bytes = std::string;

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// A new file each time: ext4 writes an emptied and refilled one to disk when it is closed.
inline void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The streams of a recorded tape, by thread.
using Streams = std::map<std::uint32_t, std::vector<RecordedEvent>>;

inline Result<Streams> read_streams(const TapeReader& reader) {
  Streams streams;
  const auto visit = [](void* context, ThreadIndex thread, const RecordedEvent* events, std::size_t n) {
    auto& stream = (*static_cast<Streams*>(context))[static_cast<std::uint32_t>(thread)];
    stream.insert(stream.end(), events, events + n);
    return true;
  };
  HEAPTAPE_TRY(reader.visit_recorded(visit, &streams));
  return streams;
}

inline std::vector<Kind> known_kinds() {
  std::vector<Kind> kinds;
  for (std::uint8_t i = 0; i < kind_limit; ++i) {
    if (is_known(Kind{i})) {
      kinds.push_back(Kind{i});
    }
  }
  return kinds;
}

// Any event that a tape can hold: every kind, phases of reallocs, sizes of all magnitudes,
// properties only where the kind carries them, addresses that come back and addresses that do not.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed, bool with_sites = false)
      : random_(seed), with_sites_(with_sites) {}

  RecordedEvent next() {
    RecordedEvent e;
    e.kind = kinds_[random_() % kinds_.size()];
    if (is_realloc(e.kind)) {
      e.phase = Phase{static_cast<std::uint8_t>(random_() % 4)};
    }
    stamp_ += random_() % 8 == 0 ? magnitude() : random_() % 300;
    e.stamp = stamp_;
    const KindTraits traits = kind_traits(e.kind);
    if (traits.size) {
      e.size_bytes = random_() % 2 == 0 ? random_() % 512 : magnitude();
    }
    if (traits.alignment) {
      e.alignment = random_() % 2 == 0 ? std::uint64_t{1} << (random_() % 64) : magnitude();
    }
    if (traits.address) {
      e.address = random_() % 3 == 0 ? magnitude() : heap_ + random_() % 64 * 48;
    }
    if (with_sites_ && random_() % 4 != 0) {
      e.site = SiteId{random_() % 16 == 0 ? magnitude() : 0x5555'0000'1000 + random_() % 100 * 7};
    }
    return e;
  }
  std::vector<RecordedEvent> take(std::size_t n) {
    std::vector<RecordedEvent> events(n);
    for (RecordedEvent& e : events) {
      e = next();
    }
    return events;
  }
  // 0 to 2^64 - 1, all magnitudes alike.
  std::uint64_t magnitude() { return random_() >> (random_() % 65 % 64); }
  std::mt19937_64& generator() { return random_; }

 private:
  std::mt19937_64 random_;
  std::vector<Kind> kinds_ = known_kinds();
  std::uint64_t stamp_ = random_() % 1000;
  std::uint64_t heap_ = 0x7f12'3456'7000 + random_() % 4096 * 16;
  bool with_sites_;
};

}  // namespace heaptape::format
