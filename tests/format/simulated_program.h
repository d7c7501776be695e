// A program of several threads over one simulated heap, as its recorder would see it.
//
// Stamps are in true order, so that a merge of what it writes needs no repair; everything that an
// allocator call can be occurs: failures, null arguments, reallocs of all outcomes (other threads act
// between their begin and end), blocks born before the recording, reallocs open at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "format/event_codec.h"
#include "format/tape.h"
#include "format/writer.h"

namespace heaptape::format {

class SimulatedProgram {
 public:
  SimulatedProgram(std::uint64_t seed, std::uint32_t threads) : random_(seed), threads_(threads) {}

  struct Step {
    ThreadIndex thread{};
    RecordedEvent event;
  };
  std::vector<Step> run(std::size_t events) {
    steps_.clear();
    while (steps_.size() < events) {
      const auto t = static_cast<std::uint32_t>(random_() % threads_.size());
      if (threads_[t].open) {
        end_realloc(t);
      } else {
        call(t);
      }
    }
    return std::move(steps_);
  }

 private:
  struct Open {
    RecordedEvent begin;
  };
  struct Thread {
    std::optional<Open> open;
  };

  RecordedEvent event(Kind kind, std::uint64_t address) {
    RecordedEvent e;
    e.kind = kind;
    e.address = address;
    e.stamp = stamp_ += 1 + random_() % 3000;
    if (random_() % 2 == 0) {
      e.site = SiteId{0x55'0000'0000 + random_() % 40 * 16};
    }
    return e;
  }
  void put(std::uint32_t thread, const RecordedEvent& e) { steps_.push_back({ThreadIndex{thread}, e}); }

  std::uint64_t fresh_address() {
    if (!dead_.empty() && random_() % 4 != 0) {
      const std::uint64_t address = dead_.back();
      dead_.pop_back();
      return address;
    }
    return next_address_ += 16 + random_() % 20 * 16;
  }
  std::uint64_t take_live() {
    std::swap(live_[random_() % live_.size()], live_.back());
    const std::uint64_t address = live_.back();
    live_.pop_back();
    return address;
  }
  std::uint64_t size() { return random_() % 200 == 0 ? random_() : random_() % 400; }
  std::uint64_t alignment() { return random_() % 10 == 0 ? 24 : std::uint64_t{1} << (random_() % 20); }

  void call(std::uint32_t t) {
    constexpr Kind acquires[] = {Kind::malloc,
                                 Kind::calloc,
                                 Kind::posix_memalign,
                                 Kind::aligned_alloc,
                                 Kind::valloc,
                                 Kind::operator_new,
                                 Kind::operator_new_array_nothrow};
    constexpr Kind releases[] = {Kind::free, Kind::free_sized, Kind::operator_delete_sized, Kind::cfree,
                                 Kind::operator_delete_array};
    const std::uint64_t dice = random_() % 100;
    if (dice < 45 || (live_.empty() && dice < 95)) {
      RecordedEvent e = event(acquires[random_() % std::size(acquires)], 0);
      e.size_bytes = size();
      e.alignment = kind_traits(e.kind).alignment ? alignment() : 0;
      if (random_() % 50 != 0) {  // else it failed
        e.address = fresh_address();
        live_.push_back(e.address);
      }
      put(t, e);
    } else if (dice < 80) {
      RecordedEvent e = event(releases[random_() % std::size(releases)], take_live());
      dead_.push_back(e.address);
      put(t, e);
    } else if (dice < 95) {
      RecordedEvent e = event(random_() % 2 == 0 ? Kind::realloc : Kind::reallocarray,
                              random_() % 5 == 0 ? 0 : take_live());
      e.phase = Phase::begin;
      e.size_bytes = random_() % 10 == 0 ? 0 : size();
      put(t, e);
      threads_[t].open = Open{e};
    } else if (dice == 95) {
      put(t, event(Kind::malloc_trim, 0));
    } else if (dice < 98) {
      put(t, event(Kind::free, 0));
    } else {  // born before the recording
      put(t, event(Kind::free, old_address_ += 64));
    }
  }

  void end_realloc(std::uint32_t t) {
    const RecordedEvent begin = threads_[t].open->begin;
    threads_[t].open.reset();
    RecordedEvent e = event(begin.kind, 0);
    e.phase = Phase::end;
    e.size_bytes = begin.size_bytes;
    if (begin.address != 0 && begin.size_bytes == 0) {  // freed
      dead_.push_back(begin.address);
    } else if (random_() % 10 == 0) {
      e.phase = Phase::failed;
      if (begin.address != 0) {
        live_.push_back(begin.address);
      }
    } else if (begin.address != 0 && random_() % 2 == 0) {  // in place
      e.address = begin.address;
      live_.push_back(e.address);
    } else {
      e.address = fresh_address();
      live_.push_back(e.address);
      if (begin.address != 0) {
        dead_.push_back(begin.address);
      }
    }
    put(t, e);
  }

  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<Step> steps_;
  std::vector<std::uint64_t> live_;
  std::vector<std::uint64_t> dead_;
  std::uint64_t next_address_ = 0x7f00'0000'0000;
  std::uint64_t old_address_ = 0x1000;
  std::uint64_t stamp_ = 1000;
};

// As the collector writes it: in pieces, a watermark now and then.
inline Result<void> write_steps(TapeWriter& writer, const std::vector<SimulatedProgram::Step>& steps,
                                std::size_t steps_per_watermark) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    HEAPTAPE_TRY(writer.append(steps[i].thread, {&steps[i].event, 1}));
    if (i % steps_per_watermark == steps_per_watermark - 1) {
      const std::uint64_t tick = steps[i].event.stamp;
      HEAPTAPE_TRY(writer.watermark({tick, static_cast<std::int64_t>(tick)}));
    }
  }
  return {};
}

// One tick is one nanosecond.
inline TapeHeader simulated_header() {
  TapeHeader header;
  header.program = "/usr/bin/simulated";
  header.ticks_per_second = 1e9;
  header.stacks = StackMode::caller;
  header.source = "recorded";
  return header;
}

}  // namespace heaptape::format
