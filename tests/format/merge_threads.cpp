#include "tests/format/merge_threads.h"

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "format/merge.h"

namespace heaptape::format::merge_test {
namespace {

#if defined(__x86_64__)
std::uint64_t plain_stamp() { return __rdtsc(); }
std::uint64_t fenced_stamp() {
  _mm_lfence();
  return __rdtsc();
}
#else
std::uint64_t plain_stamp() { return 0; }
std::uint64_t fenced_stamp() { return 0; }
#endif

// Notes of one thread: written by it alone, read by the collector up to `published`.
class Notes {
 public:
  explicit Notes(std::uint32_t capacity) : notes_(capacity + 4) {}

  [[nodiscard]] bool full() const { return count_ + 4 > notes_.size(); }
  void add(const Note& note) {
    notes_[count_++] = note;
    published_.store(count_, std::memory_order_release);  // partner: published()
  }
  [[nodiscard]] std::uint32_t published() const { return published_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<Note> release() {
    notes_.resize(count_);
    return std::move(notes_);
  }

 private:
  std::vector<Note> notes_;
  std::uint32_t count_ = 0;
  alignas(64) std::atomic<std::uint32_t> published_{0};
};

class Worker {
 public:
  Worker(std::uint32_t number, Notes& notes, std::vector<std::atomic<std::uint64_t*>>& places,
         std::uint64_t seed)
      : notes_(notes), places_(places), random_(seed * 1000 + number), next_object_((number + 1ULL) << 40) {}

  void run() {
    for (std::uint64_t calls = 0; !notes_.full(); ++calls) {
      if (calls % 32 == 0) {
        std::this_thread::yield();  // on a busy machine the threads would else run one after another
      }
      auto& place = places_[random_() % places_.size()];
      std::uint64_t* block = place.exchange(nullptr, std::memory_order_acq_rel);  // partner: every exchange
      if (block == nullptr) {
        hand_over(acquire());
      } else if (const std::uint64_t what = random_() % 8; what < 4) {
        release(block);
      } else if (what < 6) {
        hand_over(resize(block));
      } else {
        hand_over(block);
      }
    }
  }

 private:
  // Large enough that thread caches do not keep them: then one thread gets what another has just freed.
  std::uint32_t size() {
    return static_cast<std::uint32_t>(random_() % 4 == 0 ? 16 + random_() % 200 : 1100 + random_() % 8 * 64);
  }

  std::uint64_t* acquire() {
    const std::uint32_t bytes = size();
    auto* block = static_cast<std::uint64_t*>(std::malloc(bytes));
    const std::uint64_t stamp = plain_stamp();
    notes_.add(
        {stamp, reinterpret_cast<std::uint64_t>(block), next_object_, bytes, Kind::malloc, Phase::whole});
    *block = next_object_++;
    return block;
  }
  void release(std::uint64_t* block) {
    const std::uint64_t object = *block;
    const std::uint64_t stamp = fenced_stamp();
    notes_.add({stamp, reinterpret_cast<std::uint64_t>(block), object, 0, Kind::free, Phase::whole});
    std::free(block);
  }
  std::uint64_t* resize(std::uint64_t* block) {
    const std::uint32_t bytes = size();
    const std::uint64_t object = *block;
    const std::uint64_t begin = fenced_stamp();
    notes_.add({begin, reinterpret_cast<std::uint64_t>(block), object, bytes, Kind::realloc, Phase::begin});
    auto* moved = static_cast<std::uint64_t*>(std::realloc(block, bytes));
    const std::uint64_t end = plain_stamp();
    notes_.add({end, reinterpret_cast<std::uint64_t>(moved), next_object_, bytes, Kind::realloc, Phase::end});
    *moved = next_object_++;
    return moved;
  }
  void hand_over(std::uint64_t* block) {
    auto& place = places_[random_() % places_.size()];
    std::uint64_t* old = place.exchange(block, std::memory_order_acq_rel);  // partner: every exchange
    if (old != nullptr) {
      release(old);
    }
  }

  Notes& notes_;
  std::vector<std::atomic<std::uint64_t*>>& places_;
  std::minstd_rand random_;
  std::uint64_t next_object_;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RecordedEvent Note::event() const {
  RecordedEvent e;
  e.stamp = stamp;
  e.address = address;
  e.size_bytes = size_bytes;
  e.kind = kind;
  e.phase = phase;
  return e;
}

std::size_t ThreadsRecording::events() const {
  std::size_t n = 0;
  for (const auto& of_thread : notes) {
    n += of_thread.size();
  }
  return n;
}

ThreadsRecording record_threads(std::uint32_t threads, std::uint32_t events_per_thread, std::uint64_t seed) {
  mallopt(M_ARENA_MAX, 1);  // all threads take from one heap, so that addresses change threads at once
  ThreadsRecording recording;
  std::vector<std::unique_ptr<Notes>> notes;
  for (std::uint32_t i = 0; i < threads; ++i) {
    notes.push_back(std::make_unique<Notes>(events_per_thread));
  }
  std::vector<std::atomic<std::uint64_t*>> places(256);
  const std::int64_t start_ns = now_ns();
  recording.header.clock = ClockSource::tsc;
  recording.header.start_tick = fenced_stamp();

  std::latch started(threads);
  std::vector<std::thread> workers;
  std::atomic<std::uint32_t> running{threads};
  for (std::uint32_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      started.arrive_and_wait();
      Worker(i, *notes[i], places, seed).run();
      running.fetch_sub(1, std::memory_order_release);  // partner: the collector's load
    });
  }
  std::vector<std::uint32_t> drained(threads, 0);
  for (bool last = false; !last;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    last = running.load(std::memory_order_acquire) == 0;  // partner: the workers' fetch_sub
    const std::uint64_t tick = fenced_stamp();
    for (std::uint32_t i = 0; i < threads; ++i) {
      const std::uint32_t to = notes[i]->published();
      if (to != drained[i]) {
        recording.items.push_back({i, drained[i], to, {}});
        drained[i] = to;
      }
    }
    recording.items.push_back({ThreadsRecording::Item::watermark, 0, 0, {tick, now_ns() - start_ns}});
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  for (auto& place : places) {
    std::free(place.load(std::memory_order_relaxed));  // the threads have been joined
  }
  const double ticks = static_cast<double>(fenced_stamp() - recording.header.start_tick);
  recording.header.ticks_per_second = ticks * 1e9 / static_cast<double>(now_ns() - start_ns);
  for (auto& of_thread : notes) {
    recording.notes.push_back(of_thread->release());
  }
  return recording;
}

ThreadsOutcome merge_threads(const ThreadsRecording& recording, std::uint32_t without_thread,
                             std::size_t without_note) {
  ThreadsOutcome outcome;
  Merger merger(recording.header);
  std::vector<std::uint64_t> truth(1);                       // by object number
  std::vector<std::size_t> next(recording.notes.size(), 0);  // by thread
  std::vector<Event> batch;
  std::chrono::steady_clock::duration merging{0};

  const auto compare = [&](const Event& e) {
    if (e.has(EventFlag::implied)) {
      return;
    }
    const auto thread = static_cast<std::uint32_t>(e.thread);
    const std::vector<Note>& notes = recording.notes[thread];
    std::size_t& at = next[thread];
    at += thread == without_thread && at == without_note ? 1 : 0;
    std::uint64_t releases = 0;
    if (notes[at].phase == Phase::begin) {
      releases = notes[at++].object;
    }
    const Note& note = notes[at++];
    const std::uint64_t acquires = note.kind == Kind::free ? 0 : note.object;
    releases = note.kind == Kind::free ? note.object : releases;
    if (acquires != 0) {
      truth.push_back(acquires);
    }
    outcome.wrong_pairs += (e.object != ObjectId::none) != (acquires != 0) || e.kind != note.kind ||
                                   (releases != 0 && truth[static_cast<std::size_t>(e.released)] != releases)
                               ? 1
                               : 0;
  };
  const auto drain = [&] {
    for (;;) {
      const auto start = std::chrono::steady_clock::now();
      merger.take(batch, 4096);
      merging += std::chrono::steady_clock::now() - start;
      if (batch.empty()) {
        return;
      }
      outcome.events += batch.size();
      for (const Event& e : batch) {
        compare(e);
      }
      batch.clear();
    }
  };
  for (const ThreadsRecording::Item& item : recording.items) {
    if (item.thread == ThreadsRecording::Item::watermark) {
      merger.watermark(item.mark);
      drain();
      continue;
    }
    std::vector<RecordedEvent> events;
    events.reserve(item.to - item.from);
    for (std::size_t i = item.from; i < item.to; ++i) {
      if (item.thread != without_thread || i != without_note) {
        events.push_back(recording.notes[item.thread][i].event());
      }
    }
    const auto start = std::chrono::steady_clock::now();
    merger.add(ThreadIndex{item.thread}, std::move(events));
    merging += std::chrono::steady_clock::now() - start;
  }
  merger.finish(true);
  drain();
  outcome.report = merger.report();
  outcome.merge_seconds = std::chrono::duration<double>(merging).count();
  return outcome;
}

}  // namespace heaptape::format::merge_test
