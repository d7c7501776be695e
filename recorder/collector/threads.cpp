#include "recorder/collector/threads.h"

#include <utility>

#include "recorder/collector/proc.h"

namespace heaptape::collector {

namespace {

// The kernel hands out all other numbers before one comes back, which takes far longer.
constexpr std::int64_t late_events_ns = 100'000'000;

}  // namespace

void Threads::mark(std::size_t index) {
  if (!std::exchange(threads_[index].unsaved, true)) {
    unsaved_.push_back(index);
  }
}

format::ThreadIndex Threads::start(std::uint32_t tid, std::uint64_t tick, std::int64_t now_ns) {
  const auto [known, fresh] = by_tid_.try_emplace(tid, threads_.size());
  if (!fresh) {
    Entry& last = threads_[known->second];
    if (last.ended_ns == 0 || now_ns - last.ended_ns < late_events_ns) {
      last.ended_ns = 0;
      last.info.end_tick = 0;
      living_.push_back(known->second);
      mark(known->second);
      return last.info.thread;
    }
    known->second = threads_.size();
  }
  Entry entry;
  entry.info.thread = format::ThreadIndex{static_cast<std::uint32_t>(threads_.size())};
  entry.info.tid = tid;
  entry.info.start_tick = tick;
  unsaved_.push_back(threads_.size());
  living_.push_back(threads_.size());
  threads_.push_back(std::move(entry));
  return threads_.back().info.thread;
}

void Threads::end(format::ThreadIndex thread, std::uint64_t tick, std::int64_t now_ns) {
  const auto index = static_cast<std::size_t>(thread);
  threads_[index].info.end_tick = tick;
  threads_[index].ended_ns = now_ns;
  mark(index);
}

void Threads::read_names(pid_t pid) {
  std::erase_if(living_, [this](std::size_t index) { return threads_[index].ended_ns != 0; });
  for (const std::size_t index : living_) {
    format::ThreadInfo& info = threads_[index].info;
    std::string name = thread_name(pid, static_cast<pid_t>(info.tid));
    if (!name.empty() && name != info.name) {
      info.name = std::move(name);
      mark(index);
    }
  }
}

std::vector<format::ThreadInfo> Threads::take_unsaved() {
  std::vector<format::ThreadInfo> infos;
  infos.reserve(unsaved_.size());
  for (const std::size_t index : std::exchange(unsaved_, {})) {
    threads_[index].unsaved = false;
    infos.push_back(threads_[index].info);
  }
  return infos;
}

}  // namespace heaptape::collector
