// The part of ReplayRun that measures memory.
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "replayer/engine/purge.h"
#include "replayer/engine/replay.h"

namespace heaptape::replayer::engine {

namespace {

// Memory can be given back below what was there at the start (a purge does it): then nothing is left.
std::uint64_t above(std::uint64_t now, std::uint64_t fixed) noexcept { return now > fixed ? now - fixed : 0; }

}  // namespace

void ReplayRun::read_fixed() noexcept {
  // Twice: what the first reading makes resident belongs to the start.
  fixed_exact_ = footprint_.exact();
  if (space()) fixed_cheap_ = footprint_.cheap();
  fixed_exact_ = footprint_.exact();
  if (space()) fixed_cheap_ = footprint_.cheap();
  result_.fixed_resident_bytes = fixed_exact_.resident_bytes;
}

InstantResult ReplayRun::take(bool exact) noexcept {
  const Footprint now = exact ? footprint_.exact() : footprint_.cheap();
  const Footprint& fixed = exact ? fixed_exact_ : fixed_cheap_;
  InstantResult instant{};
  instant.op_index = ops_done_;
  instant.resident_bytes = above(now.resident_bytes, fixed.resident_bytes);
  instant.lazy_free_bytes = above(now.lazy_free_bytes, fixed.lazy_free_bytes);
  instant.committed_bytes = above(now.committed_bytes, fixed.committed_bytes);
  instant.reserved_bytes = above(now.reserved_bytes, fixed.reserved_bytes);
  instant.requested_bytes = ledger_.requested_bytes;
  instant.usable_bytes = ledger_.usable_bytes;
  instant.live_page_bytes = ledger_.live_page_bytes();
  instant.live_huge_bytes = ledger_.live_huge_bytes();
  instant.live_objects = ledger_.live_objects;
  instant.method = now.method;
  if (instant.resident_bytes > result_.peak_resident_bytes)
    result_.peak_resident_bytes = instant.resident_bytes;
  return instant;
}

// All instants that fall before run `run_`. All other threads stand still.
void ReplayRun::take_due_instants() noexcept {
  const PlanHeader& header = *plan_.header;
  while (next_instant_ < header.instant_count && plan_.instants[next_instant_].run == run_ &&
         result_.instant_count < request_.instant_capacity) {
    instants_[result_.instant_count++] = take(plan_.instants[next_instant_++].exact != 0);
  }
}

void* ReplayRun::watch(void* run) noexcept {
  static_cast<ReplayRun*>(run)->watch_peak();
  for (;;) ::pause();
}

// The threads run on meanwhile: the peak between two looks is not seen. As much rest as work, so that
// the mappings are not locked all the time.
void ReplayRun::watch_peak() noexcept {
  ready_.arrive();
  go_.wait();
  while (stop_watching_.load(std::memory_order_acquire) == 0) {
    const std::uint64_t begin_ns = now_ns();
    const std::uint64_t resident = above(footprint_.cheap().resident_bytes, fixed_cheap_.resident_bytes);
    if (resident > result_.peak_resident_bytes) result_.peak_resident_bytes = resident;
    const std::uint64_t took_ns = now_ns() - begin_ns;
    constexpr std::uint64_t least_rest_ns = 500'000;
    const timespec rest{
        .tv_sec = 0, .tv_nsec = static_cast<long>(std::clamp(took_ns, least_rest_ns, 100 * least_rest_ns))};
    ::nanosleep(&rest, nullptr);
  }
  watch_ended_.arrive();
}

// In `deps` nobody keeps totals while the threads run; they are counted from the slots at the end.
void ReplayRun::count_live_blocks() noexcept {
  for (std::uint32_t slot = 0; slot < plan_.header->slot_count; ++slot) {
    if (replay_.slots[slot] != nullptr) ledger_.enter(slot, replay_.slots[slot]);
  }
  ops_done_ = plan_.header->op_count - plan_.header->wait_count;
}

void ReplayRun::measure_purged() noexcept {
  for (std::uint32_t i = 1; i < plan_.header->thread_count; ++i) {
    replay_.lanes[i].gate.open();
    purged_.wait_for(i);
  }
  const bool purged = purge(0);
  result_.purged = purged ? 1 : 0;
  const std::uint64_t peak = result_.peak_resident_bytes;
  result_.after_purge = take(true);
  result_.peak_resident_bytes = peak;
  result_.placement_digest = ledger_.placement_digest();
  result_.placement_valid = plan_.header->order == Order::deps ? 0 : 1;
}

}  // namespace heaptape::replayer::engine
