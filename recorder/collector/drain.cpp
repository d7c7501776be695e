#include "recorder/collector/drain.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace heaptape::collector {

using ring::ReadStatus;
using ring::RingRecord;
using ring::RingState;

namespace {

static_assert(static_cast<int>(ring::Call::malloc) == static_cast<int>(format::Kind::malloc));
static_assert(static_cast<int>(ring::Call::posix_memalign) == static_cast<int>(format::Kind::posix_memalign));
static_assert(static_cast<int>(ring::Call::operator_new) == static_cast<int>(format::Kind::operator_new));
static_assert(static_cast<int>(ring::Call::operator_new_array_nothrow) ==
              static_cast<int>(format::Kind::operator_new_array_nothrow));
static_assert(static_cast<int>(ring::Call::realloc) == static_cast<int>(format::Kind::realloc));
static_assert(static_cast<int>(ring::Call::reallocarray) == static_cast<int>(format::Kind::reallocarray));
static_assert(static_cast<int>(ring::Call::free) == static_cast<int>(format::Kind::free));
static_assert(static_cast<int>(ring::Call::operator_delete_array_sized) ==
              static_cast<int>(format::Kind::operator_delete_array_sized));
static_assert(static_cast<int>(ring::Call::malloc_trim) == static_cast<int>(format::Kind::malloc_trim));
static_assert(static_cast<int>(ring::Phase::begin) == static_cast<int>(format::Phase::begin));
static_assert(static_cast<int>(ring::Phase::end) == static_cast<int>(format::Phase::end));
static_assert(static_cast<int>(ring::Phase::failed) == static_cast<int>(format::Phase::failed));

format::RecordedEvent to_event(const RingRecord& r) noexcept {
  format::RecordedEvent e;
  e.stamp = r.stamp;
  e.address = r.address;
  e.size_bytes = r.size_bytes;
  e.alignment = r.alignment;
  e.site = format::SiteId{r.site};
  e.kind = format::Kind{static_cast<std::uint8_t>(r.call)};
  e.phase = format::Phase{static_cast<std::uint8_t>(r.phase)};
  return e;
}

bool written(RingState state) noexcept { return state == RingState::claimed || state == RingState::ending; }
bool left(RingState state) noexcept { return state == RingState::released || state == RingState::chained; }

}  // namespace

void Drain::Slot::reset() noexcept {
  lost_events = 0;
  neighbour = no_ring;
  waiting_passes = 0;
  gap_due = false;
  expected = false;
  bond = Bond::none;
}

format::Result<Drain::Pass> Drain::pass(std::int64_t now_ns) {
  pass_ = {};
  now_ns_ = now_ns;
  for (auto i = static_cast<std::uint32_t>(slots_.size()); i < segment_->high(); ++i) {
    slots_.emplace_back(ring::RingReader(segment_->view().ring(i), segment_->view().ring_count()));
  }
  const auto count = static_cast<std::uint32_t>(slots_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const RingState state = segment_->state(i);
    if (slots_[i].bond == Bond::none && (written(state) || left(state))) {
      HEAPTAPE_TRY(meet(i));
    } else if (slots_[i].bond == Bond::waiting) {
      resolve_waiting(i);
    }
  }
  bind_newcomers();
  // In order of the claims: a thread may have written into a second ring after it gave back the first
  // (events after its end), and that comes later on the tape. All of the first is there by then.
  order_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (slots_[i].bond == Bond::bound) {
      order_.push_back(i);
    }
  }
  std::ranges::sort(order_, {}, [this](std::uint32_t i) { return std::pair(slots_[i].begin_stamp, i); });
  for (const std::uint32_t i : order_) {
    if (slots_[i].bond == Bond::bound) {
      HEAPTAPE_TRY(drain_chain(i));
    }
  }
  offer_ended();
  return pass_;
}

// Reads the first record of a claim, which says whose it is.
format::Result<void> Drain::meet(std::uint32_t index) {
  Slot& slot = slots_[index];
  RingRecord first;
  const ring::ReadResult result = slot.reader.read(&first, 1);
  if (result.count == 0) {
    return result.status == ReadStatus::damaged ? found_damage(index) : format::Result<void>{};
  }
  last_stamp_ = first.stamp;
  slot.begin_stamp = first.stamp;
  slot.last_stamp = first.stamp;
  if (first.type == RingRecord::Type::thread_start) {
    newcomers_.push_back({first.stamp, index, static_cast<std::uint32_t>(first.value)});
    return {};
  }
  if (first.type != RingRecord::Type::carry_on) {
    return found_damage(index);
  }
  if (slot.expected && slot.neighbour == first.value) {
    slot.expected = false;
    slot.bond = Bond::bound;
    return {};
  }
  slot.neighbour = static_cast<std::uint32_t>(first.value);
  slot.bond = Bond::waiting;
  return {};
}

// A thread whose jump will never be read: it was lost with a damaged ring.
void Drain::resolve_waiting(std::uint32_t index) {
  Slot& slot = slots_[index];
  const bool neighbour_is_damaged =
      slot.neighbour < slots_.size() && slots_[slot.neighbour].bond == Bond::damaged;
  slot.waiting_passes += 1;
  if (neighbour_is_damaged) {
    slot.thread = slots_[slot.neighbour].thread;
  } else if (slot.waiting_passes > most_waiting_passes) {
    const std::uint32_t tid = segment_->view().ring(index).header.owner_tid.load(std::memory_order_relaxed);
    slot.thread = threads_->start(tid, last_stamp_, now_ns_);
  } else {
    return;
  }
  slot.gap_due = true;
  slot.bond = Bond::bound;
}

void Drain::bind_newcomers() {
  std::ranges::sort(newcomers_, {}, &Newcomer::stamp);
  for (const Newcomer& n : newcomers_) {
    slots_[n.ring].thread = threads_->start(n.tid, n.stamp, now_ns_);
    slots_[n.ring].bond = Bond::bound;
  }
  newcomers_.clear();
}

// A thread's rings one after the other. Ends: a ring is bound at most once in a pass, because those
// that ended are offered again only at the end of it.
format::Result<void> Drain::drain_chain(std::uint32_t first) {
  for (std::uint32_t index = first; index != no_ring;) {
    auto next = drain_ring(index);
    if (!next) {
      return format::Failure(std::move(next).error());
    }
    index = *next;
  }
  return {};
}

// What was published before now; returns the ring where the thread carries on.
format::Result<std::uint32_t> Drain::drain_ring(std::uint32_t index) {
  Slot& slot = slots_[index];
  const std::uint64_t backlog = slot.reader.backlog_words();
  const std::uint64_t begin = slot.reader.position();
  pass_.fullest_words = std::max(pass_.fullest_words, backlog);
  pass_.rings += static_cast<std::uint32_t>(backlog != 0);
  for (;;) {
    const ring::ReadResult result = slot.reader.read(records_.data(), records_.size());
    HEAPTAPE_TRY(take(slot, std::span(records_).first(result.count)));
    slot.reader.release();
    segment_->advance_clock();
    if (result.status == ReadStatus::damaged) {
      HEAPTAPE_TRY(found_damage(index));
      return no_ring;
    }
    if (result.status == ReadStatus::ended) {
      slot.bond = Bond::ended;
      const RingRecord& last = records_[result.count - 1];
      if (last.type == RingRecord::Type::jump) {
        return follow(index, last.value);
      }
      threads_->end(slot.thread, last.stamp, now_ns_);
      return no_ring;
    }
    if (result.status == ReadStatus::drained || slot.reader.position() - begin >= backlog) {
      return no_ring;
    }
  }
}

format::Result<void> Drain::take(Slot& slot, std::span<const RingRecord> records) {
  events_.clear();
  for (const RingRecord& r : records) {
    if (r.type == RingRecord::Type::event) [[likely]] {
      if (slot.gap_due) {
        HEAPTAPE_TRY(flush(slot));
        HEAPTAPE_TRY(write_gap(slot, r.stamp));
      }
      events_.push_back(to_event(r));
      last_stamp_ = r.stamp;
      slot.last_stamp = r.stamp;
    } else if (r.type == RingRecord::Type::gap) {
      const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - slot.lost_events;
      slot.lost_events += std::min(r.value, most);
      slot.gap_due = true;
    } else if (r.type == RingRecord::Type::thread_end && slot.gap_due) {
      HEAPTAPE_TRY(flush(slot));
      HEAPTAPE_TRY(write_gap(slot, r.stamp));
    }
  }
  return flush(slot);
}

format::Result<void> Drain::flush(const Slot& slot) {
  if (events_.empty()) {
    return {};
  }
  pass_.events += events_.size();
  auto written = writer_->append(slot.thread, events_);
  events_.clear();
  return written;
}

format::Result<void> Drain::write_gap(Slot& slot, std::uint64_t stamp) {
  const format::Gap gap{slot.thread, slot.lost_events, stamp};
  slot.gap_due = false;
  slot.lost_events = 0;
  return writer_->gap(gap);
}

// A jump has been read in `from`: binds the ring it names, if its carry_on is there already.
format::Result<std::uint32_t> Drain::follow(std::uint32_t from, std::uint64_t to) {
  if (to >= slots_.size()) {
    HEAPTAPE_TRY(found_damage(from));
    return no_ring;
  }
  const auto index = static_cast<std::uint32_t>(to);
  Slot& next = slots_[index];
  const bool waits_for_us = next.bond == Bond::waiting && next.neighbour == from;
  if (next.bond != Bond::none && !waits_for_us) {
    HEAPTAPE_TRY(found_damage(from));
    return no_ring;
  }
  next.thread = slots_[from].thread;
  next.gap_due = slots_[from].gap_due;
  next.lost_events = slots_[from].lost_events;
  if (waits_for_us) {
    next.bond = Bond::bound;
  } else {
    next.neighbour = from;
    next.expected = true;
    HEAPTAPE_TRY(meet(index));
    bind_newcomers();  // only where the program broke the rules: someone else has claimed that ring
  }
  return next.bond == Bond::bound ? index : no_ring;
}

format::Result<void> Drain::found_damage(std::uint32_t index) {
  Slot& slot = slots_[index];
  const bool has_thread = slot.bond == Bond::bound || slot.bond == Bond::ended || slot.expected;
  damaged_rings_ += 1;
  if (!has_thread) {
    const std::uint32_t tid = segment_->view().ring(index).header.owner_tid.load(std::memory_order_relaxed);
    slot.thread = threads_->start(tid, last_stamp_, now_ns_);
  }
  slot.bond = Bond::damaged;
  return write_gap(slot, last_stamp_);
}

void Drain::offer_ended() {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.bond != Bond::ended && slot.bond != Bond::damaged) {
      continue;
    }
    const bool done = left(segment_->state(i));  // before the head is read: then that is the last one
    if (slot.bond == Bond::damaged) {
      slot.reader.restart_at_head();
      slot.reader.release();
    }
    if (done) {
      slot.reset();
      segment_->offer(i);
    }
  }
}

void Drain::take_back(std::span<const std::uint32_t> rings, std::int64_t now_ns) {
  for (const std::uint32_t i : rings) {
    if (i < slots_.size() && slots_[i].bond == Bond::bound) {
      threads_->end(slots_[i].thread, slots_[i].last_stamp, now_ns);
      slots_[i].reader.restart_at_head();
      slots_[i].reader.release();
      slots_[i].reset();
      segment_->offer(i);
    }
  }
}

}  // namespace heaptape::collector
