// What writing and reading a tape costs per event, and how many bytes an event takes.
//
// bin/format_bench: items are events; `bytes_per_event` is of the whole file. Times are CPU times of this
// process, files lie in memory where /dev/shm exists.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "format/pack.h"
#include "format/reader.h"
#include "format/writer.h"

namespace heaptape::format {
namespace {

constexpr std::size_t event_count = 1'000'000;
constexpr std::size_t events_per_drain = 500;
constexpr std::size_t events_per_watermark = 100'000;

// A simple allocator's addresses: the block of a size freed last comes back first.
class Heap {
 public:
  std::uint64_t take(std::uint64_t size) {
    auto& list = free_[size / 16];
    if (list.empty()) {
      return top_ += 16 + size / 16 * 16;
    }
    const std::uint64_t address = list.back();
    list.pop_back();
    return address;
  }
  void give(std::uint64_t address, std::uint64_t size) { free_[size / 16].push_back(address); }

 private:
  std::vector<std::vector<std::uint64_t>> free_ = std::vector<std::vector<std::uint64_t>>(1024);
  std::uint64_t top_ = 0x7f12'3456'0000;
};

struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

class Scenario {
 public:
  std::vector<RecordedEvent> take() { return std::move(events_); }
  [[nodiscard]] bool done() const { return events_.size() >= event_count; }

  Block allocate(std::uint64_t size) {
    const Block block{heap_.take(size), size};
    put(Kind::malloc, block.address, size);
    return block;
  }
  void release(const Block& block) {
    put(Kind::free, block.address, 0);
    heap_.give(block.address, block.size);
  }
  std::mt19937_64& random() { return random_; }

 private:
  void put(Kind kind, std::uint64_t address, std::uint64_t size) {
    RecordedEvent e;
    e.kind = kind;
    e.stamp = stamp_ += 30 + random_() % 100;
    e.address = address;
    e.size_bytes = size;
    events_.push_back(e);
  }
  std::vector<RecordedEvent> events_;
  std::mt19937_64 random_{1};
  std::uint64_t stamp_ = 1'000'000;
  Heap heap_;
};

// Ten thousand blocks of random sizes; one dies, one is born: nothing can be predicted.
std::vector<RecordedEvent> random_window() {
  Scenario s;
  std::vector<Block> window(10'000);
  for (Block& block : window) {
    block = s.allocate(16 + s.random()() % 497);
  }
  while (!s.done()) {
    Block& block = window[s.random()() % window.size()];
    s.release(block);
    block = s.allocate(16 + s.random()() % 497);
  }
  return s.take();
}

// Requests that build a few structures and drop them, as servers and interpreters do.
std::vector<RecordedEvent> requests() {
  Scenario s;
  std::vector<Block> blocks;
  while (!s.done()) {
    for (std::uint64_t i = 0, n = 5 + s.random()() % 4; i < n; ++i) {
      blocks.push_back(s.allocate(32 + i * 48 % 400));
    }
    while (!blocks.empty()) {
      s.release(blocks.back());
      blocks.pop_back();
    }
  }
  return s.take();
}

const std::vector<RecordedEvent>& events_of(std::int64_t scenario) {
  static const std::vector<RecordedEvent> all[] = {random_window(), requests()};
  return all[scenario];
}

std::filesystem::path path_of(const std::string& name) {
  const std::filesystem::path memory = "/dev/shm";
  return (std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()) /
         ("heaptape-bench-" + std::to_string(::getpid()) + name);
}

// Stops the benchmark with the error's words.
template <typename T>
T take(benchmark::State& state, Result<T> result) {
  if (!result) {
    state.SkipWithError(result.error().message().c_str());
    std::exit(1);
  }
  return std::move(*result);
}
void take(benchmark::State& state, const Result<void>& result) {
  if (!result) {
    state.SkipWithError(result.error().message().c_str());
    std::exit(1);
  }
}

void write_tape(benchmark::State& state, const std::filesystem::path& path) {
  TapeHeader header;
  header.ticks_per_second = 2.4e9;
  header.source = "recorded";
  TapeWriter writer = take(state, TapeWriter::create(path, header));
  const std::span<const RecordedEvent> events = events_of(state.range(0));
  for (std::size_t i = 0; i < events.size(); i += events_per_drain) {
    const auto part = events.subspan(i, std::min(events_per_drain, events.size() - i));
    take(state, writer.append(ThreadIndex{0}, part));
    if (i % events_per_watermark == 0) {
      take(state, writer.watermark({part.back().stamp, static_cast<std::int64_t>(part.back().stamp / 2)}));
    }
  }
  take(state, writer.finish({}));
}

void count(benchmark::State& state, const std::filesystem::path& path) {
  const std::size_t events = events_of(state.range(0)).size();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events));
  state.counters["bytes_per_event"] =
      static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(events);
  state.SetLabel(state.range(0) == 0 ? "random window" : "requests");
  std::filesystem::remove(path);
}

void read_events(benchmark::State& state, const TapeReader& reader) {
  auto cursor = take(state, reader.events());
  while (true) {
    const auto events = take(state, cursor->next());
    if (events.empty()) {
      return;
    }
    benchmark::DoNotOptimize(events.data());
  }
}

void write_recorded(benchmark::State& state) {
  const auto path = path_of("w");
  for (auto _ : state) {
    write_tape(state, path);
  }
  count(state, path);
}

void decode_recorded(benchmark::State& state) {
  const auto path = path_of("d");
  write_tape(state, path);
  const TapeReader reader = take(state, TapeReader::open(path));
  const auto visit = [](void*, ThreadIndex, const RecordedEvent* events, std::size_t) {
    benchmark::DoNotOptimize(events);
    return true;
  };
  for (auto _ : state) {
    take(state, reader.visit_recorded(visit, nullptr));
  }
  count(state, path);
}

void merge_recorded(benchmark::State& state) {
  const auto path = path_of("m");
  write_tape(state, path);
  const TapeReader reader = take(state, TapeReader::open(path));
  for (auto _ : state) {
    read_events(state, reader);
  }
  count(state, path);
}

void pack(benchmark::State& state) {
  const auto path = path_of("p");
  const auto packed = path_of("q");
  write_tape(state, path);
  const TapeReader reader = take(state, TapeReader::open(path));
  for (auto _ : state) {
    take(state, pack_tape(reader, packed));
  }
  std::filesystem::remove(path);
  count(state, packed);
}

void read_packed(benchmark::State& state) {
  const auto path = path_of("r");
  const auto packed = path_of("s");
  write_tape(state, path);
  take(state, pack_tape(take(state, TapeReader::open(path)), packed));
  std::filesystem::remove(path);
  const TapeReader reader = take(state, TapeReader::open(packed));
  for (auto _ : state) {
    read_events(state, reader);
  }
  count(state, packed);
}

// Every byte read and checked.
void open_whole(benchmark::State& state) {
  const auto path = path_of("o");
  write_tape(state, path);
  for (auto _ : state) {
    benchmark::DoNotOptimize(take(state, TapeReader::open(path)));
  }
  count(state, path);
}

BENCHMARK(write_recorded)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_recorded)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(merge_recorded)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(pack)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(read_packed)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(open_whole)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heaptape::format
