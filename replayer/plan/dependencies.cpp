#include "replayer/plan/dependencies.h"

namespace heaptape::replayer {

template <Dependencies::Links Dependencies::Slot::*links>
void Dependencies::append(Ends& ends, std::uint32_t slot) {
  (slots_[slot].*links) = {ends.newest, none};
  if (ends.newest == none) {
    ends.oldest = slot;
  } else {
    (slots_[ends.newest].*links).newer = slot;
  }
  ends.newest = slot;
}

template <Dependencies::Links Dependencies::Slot::*links>
void Dependencies::unlink(Ends& ends, std::uint32_t slot) {
  const Links l = slots_[slot].*links;
  if (l.older == none) {
    ends.oldest = l.newer;
  } else {
    (slots_[l.older].*links).newer = l.newer;
  }
  if (l.newer == none) {
    ends.newest = l.older;
  } else {
    (slots_[l.newer].*links).older = l.older;
  }
}

std::uint32_t Dependencies::take_slot(std::uint32_t thread) {
  if (thread >= free_of_thread_.size()) {
    free_of_thread_.resize(thread + 1);
  }
  std::uint32_t slot = free_of_thread_[thread].newest;
  if (slot == none) {
    slot = free_of_all_.oldest;
  }
  if (slot == none) {
    slots_.emplace_back();
    slots_.back().last.thread = thread;  // nobody to wait for
    return slot_count() - 1;
  }
  unlink<&Slot::mine>(free_of_thread_[slots_[slot].owner], slot);
  unlink<&Slot::all>(free_of_all_, slot);
  return slot;
}

void Dependencies::give_slot(std::uint32_t slot, std::uint32_t thread) {
  if (thread >= free_of_thread_.size()) {
    free_of_thread_.resize(thread + 1);
  }
  slots_[slot].owner = thread;
  append<&Slot::mine>(free_of_thread_[thread], slot);
  append<&Slot::all>(free_of_all_, slot);
}

bool Dependencies::must_wait(std::uint32_t slot, std::uint32_t thread, Position* position) {
  const Position last = slots_[slot].last;
  if (last.thread == thread) {
    return false;
  }
  std::uint64_t& known = waited_[(std::uint64_t{thread} << 32) | last.thread];
  if (known >= last.done) {
    return false;
  }
  known = last.done;
  *position = last;
  return true;
}

}  // namespace heaptape::replayer
