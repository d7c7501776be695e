#include "tests/format/merge_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <random>
#include <unordered_map>
#include <utility>

namespace heaptape::format::merge_test {
namespace {

struct Owned {  // a block that some thread may free
  std::uint64_t address;
  std::uint64_t object;
  std::uint64_t since;  // when its address was known to the thread `owner`
  std::uint32_t owner;
};

class Model {
 public:
  explicit Model(const Shape& shape) : shape_(shape), random_(shape.seed), threads_(shape.threads) {
    for (std::uint32_t i = shape.addresses; i-- != 0;) {
      free_.push_back(0x7F0000001000ULL + 16 * (i + i / 3));
    }
    recording_.header.clock = shape.clock;
    recording_.header.ticks_per_second = shape.clock == ClockSource::tsc ? 3e9 : 0;
  }

  Recording run() {
    std::uint32_t started = shape_.prefix_calls != 0 ? 1 : shape_.threads;
    for (std::uint32_t i = 0; i < started; ++i) {
      wake_at(i, below(shape_.gap_ticks));
    }
    next_drain_ = shape_.pass_ticks;
    while (calls_ < shape_.calls) {
      const auto [time, thread] = agenda_.top();
      if (next_drain_ <= time) {
        drain_next();
        continue;
      }
      agenda_.pop();
      now_ = time;
      act(thread);
      if (started != shape_.threads && calls_ >= shape_.prefix_calls) {
        for (; started < shape_.threads; ++started) {
          wake_at(started, now_ + 10 + below(1000));
        }
        coarse_ = false;
      }
    }
    // Killed: what is published is drained, what is not is lost.
    for (std::uint32_t i = 0; i < shape_.threads; ++i) {
      drain(i, now_);
    }
    return std::move(recording_);
  }

 private:
  enum class Doing : std::uint8_t { nothing, acquiring, releasing, resizing, resized };
  struct Published {
    Entry entry;
    std::uint64_t at;
  };
  struct Thread {
    Doing doing = Doing::nothing;
    std::uint64_t last_stamp = 0;
    std::deque<Published> ring;
    RecordedEvent event;  // of the call under way
    Call call;
    std::uint64_t old_address = 0;
    std::uint64_t old_object = 0;
  };

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool chance(std::uint64_t n, std::uint64_t of) { return random_() % of < n; }
  void wake_at(std::uint32_t thread, std::uint64_t time) { agenda_.emplace(time, thread); }

  std::uint64_t stamp(Thread& t, std::uint64_t address, bool acquires) {
    std::uint64_t s = now_;
    if (shape_.clock == ClockSource::sequence) {
      return ++sequence_;
    }
    if (shape_.prefix_calls != 0 && coarse_) {
      s = now_ / coarse_ticks * coarse_ticks;
    } else if (acquires && chance(shape_.early_percent, 100)) {
      // Mostly by little, sometimes by all that is possible.
      const std::uint64_t most = chance(1, 4) ? shape_.early_ticks : shape_.early_ticks / 50;
      s -= std::min(s, below(most + 1));
      if (!shape_.overtaking && address != 0) {
        s = std::max(s, std::min(now_, last_acquired_[address] + 1));
      }
    }
    if (acquires) {
      last_acquired_[address] = now_;
    }
    return t.last_stamp = std::max(t.last_stamp, s);
  }

  // Stamps the event of the call under way now; returns when it is visible to the collector.
  std::uint64_t publish(Thread& t, Entry entry, bool acquires) {
    const std::uint64_t gets = entry.event.phase == Phase::failed ? t.old_address : entry.event.address;
    entry.event.stamp = stamp(t, gets, acquires);
    std::uint64_t at = now_ + 2 + below(20);
    if (chance(shape_.late_permille, 1000)) {
      at += below(shape_.late_ticks);
    }
    t.ring.push_back({entry, at});
    return at;
  }

  std::uint64_t take_address() {
    const std::size_t i = chance(3, 4) ? free_.size() - 1 : below(free_.size());
    const std::uint64_t address = free_[i];
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
    return address;
  }

  void act(std::uint32_t self) {
    Thread& t = threads_[self];
    std::uint64_t next = now_;
    switch (t.doing) {
      case Doing::nothing:
        next = begin(t, self);
        break;
      case Doing::acquiring:
      case Doing::resized: {  // the real call has returned
        next = publish(t, {t.event, t.call, true}, true);
        if (t.event.address != 0) {
          owned_.push_back({t.event.address, t.call.acquired, next, self});
        } else if (t.event.phase == Phase::failed) {
          owned_.push_back({t.old_address, t.old_object, next, self});
        }
        t.doing = Doing::nothing;
        next += below(2 * shape_.gap_ticks);
        break;
      }
      case Doing::releasing:  // the real call gives the block back
        free_.push_back(t.old_address);
        t.doing = Doing::nothing;
        next += 1 + below(2 * shape_.gap_ticks);
        break;
      case Doing::resizing:
        resize(t);
        t.doing = Doing::resized;
        next += 5 + below(50);
        break;
    }
    wake_at(self, next);
  }

  std::uint64_t begin(Thread& t, std::uint32_t self) {
    ++calls_;
    t.event = {};
    t.call = {};
    t.event.size_bytes = 1 + below(1000);
    const bool full = free_.size() < 2 + shape_.threads;
    std::size_t mine = owned_.size();
    for (int tries = 0; tries < 4 && mine == owned_.size() && !owned_.empty(); ++tries) {
      const std::size_t i = below(owned_.size());
      // A pointer that comes from another thread has been on its way for a while.
      if (now_ >= owned_[i].since + (owned_[i].owner == self ? 0 : 150)) {
        mine = i;
      }
    }
    if (mine != owned_.size() && chance(shape_.resize_percent, 100)) {
      take_owned(t, mine);
      t.event.kind = Kind::realloc;
      t.event.phase = Phase::begin;
      t.event.address = t.old_address;
      t.doing = Doing::resizing;
      return publish(t, {t.event, {}, false}, false) + 1 + below(20);
    }
    if (mine != owned_.size() && (full || chance(1, 2))) {
      take_owned(t, mine);
      t.event.kind = chance(1, 2) ? Kind::free : Kind::operator_delete;
      t.event.size_bytes = 0;
      t.event.address = t.old_address;
      t.doing = Doing::releasing;
      return publish(t, {t.event, {0, t.old_object}, true}, false) + 1 + below(20);
    }
    if (full || chance(1, 50)) {  // a call that moves nothing
      t.event.kind = chance(1, 2) ? Kind::free : Kind::malloc;
      return publish(t, {t.event, {}, true}, true) + below(2 * shape_.gap_ticks);
    }
    t.event.kind = chance(1, 2) ? Kind::malloc : Kind::operator_new;
    t.event.address = take_address();
    t.call.acquired = ++objects_;
    t.doing = Doing::acquiring;
    return now_ + 5 + below(50);
  }

  void take_owned(Thread& t, std::size_t i) {
    t.old_address = owned_[i].address;
    t.old_object = owned_[i].object;
    owned_[i] = owned_.back();
    owned_.pop_back();
  }

  void resize(Thread& t) {
    t.event.phase = Phase::end;
    t.call = {++objects_, t.old_object};
    switch (below(4)) {
      case 0:
        t.event.phase = Phase::failed;
        t.event.address = 0;
        t.call = {};
        break;
      case 1:  // in place
        break;
      case 2:
        if (chance(1, 8)) {  // realloc(p, 0) that frees
          t.event.address = 0;
          t.call.acquired = 0;
          free_.push_back(t.old_address);
          break;
        }
        [[fallthrough]];
      default:  // moved
        t.event.address = take_address();
        free_.push_back(t.old_address);
    }
  }

  void drain(std::uint32_t thread, std::uint64_t until) {
    auto& ring = threads_[thread].ring;
    Block block{thread, {}};
    while (!ring.empty() && ring.front().at <= until) {
      block.entries.push_back(ring.front().entry);
      ring.pop_front();
    }
    if (!block.entries.empty()) {
      recording_.items.emplace_back(std::move(block));
    }
  }

  // A pass of the collector takes time itself: threads go on while it drains others.
  void drain_next() {
    if (drained_ == 0) {
      pass_tick_ = shape_.clock == ClockSource::sequence ? sequence_ : next_drain_;
    }
    if (drained_ != shape_.threads) {
      drain(drained_++, next_drain_ - 1);
      next_drain_ += 1 + below(100);
      return;
    }
    if (chance(shape_.marks_percent, 100)) {
      recording_.items.emplace_back(Watermark{pass_tick_, static_cast<std::int64_t>(next_drain_ / 3)});
    }
    drained_ = 0;
    next_drain_ += shape_.pass_ticks / 2 + below(shape_.pass_ticks);
  }

  static constexpr std::uint64_t coarse_ticks = 20000;

  Shape shape_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::priority_queue<std::pair<std::uint64_t, std::uint32_t>,
                      std::vector<std::pair<std::uint64_t, std::uint32_t>>, std::greater<>>
      agenda_;
  std::uint64_t now_ = 0;
  std::uint64_t next_drain_ = 0;  // of thread `drained_`
  std::uint32_t drained_ = 0;
  std::uint64_t pass_tick_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t objects_ = 0;
  std::uint32_t calls_ = 0;
  bool coarse_ = true;
  std::vector<std::uint64_t> free_;  // the allocator: mostly last in, first out
  std::vector<Owned> owned_;
  std::unordered_map<std::uint64_t, std::uint64_t> last_acquired_;  // by address: when
  Recording recording_;
};

}  // namespace

std::string Shape::name() const {
  return fmt::format(
      "seed {} threads {} calls {} addresses {} prefix {} early {}% {} late {} pass {} marks {}%", seed,
      threads, calls, addresses, prefix_calls, early_percent, early_ticks, late_permille, pass_ticks,
      marks_percent);
}

std::size_t Recording::entries() const {
  std::size_t n = 0;
  for (const Item& item : items) {
    if (const auto* block = std::get_if<Block>(&item)) {
      n += block->entries.size();
    }
  }
  return n;
}

Recording simulate(const Shape& shape) { return Model(shape).run(); }

}  // namespace heaptape::format::merge_test
