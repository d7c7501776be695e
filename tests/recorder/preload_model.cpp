#include "tests/recorder/preload_model.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace heaptape::preload_test {

using ring::Call;
using ring::Phase;
using ring::RingRecord;

namespace {

constexpr std::uint64_t begin_mark_bytes = 12347;
constexpr std::uint64_t end_mark_bytes = 12373;

const char* name_of(Call call) {
  switch (call) {
    case Call::malloc:
      return "malloc";
    case Call::calloc:
      return "calloc";
    case Call::posix_memalign:
      return "posix_memalign";
    case Call::aligned_alloc:
      return "aligned_alloc";
    case Call::memalign:
      return "memalign";
    case Call::valloc:
      return "valloc";
    case Call::pvalloc:
      return "pvalloc";
    case Call::operator_new:
      return "new";
    case Call::operator_new_array:
      return "new[]";
    case Call::operator_new_nothrow:
      return "new nothrow";
    case Call::operator_new_array_nothrow:
      return "new[] nothrow";
    case Call::realloc:
      return "realloc";
    case Call::reallocarray:
      return "reallocarray";
    case Call::free:
      return "free";
    case Call::cfree:
      return "cfree";
    case Call::free_sized:
      return "free_sized";
    case Call::free_aligned_sized:
      return "free_aligned_sized";
    case Call::operator_delete:
      return "delete";
    case Call::operator_delete_array:
      return "delete[]";
    case Call::operator_delete_sized:
      return "delete sized";
    case Call::operator_delete_array_sized:
      return "delete[] sized";
    case Call::malloc_trim:
      return "malloc_trim";
  }
  return "?";
}

}  // namespace

std::vector<RingRecord> between_marks(const std::vector<RingRecord>& events) {
  const auto begin = std::find_if(events.begin(), events.end(), [](const RingRecord& r) {
    return r.call == Call::malloc && r.size_bytes == begin_mark_bytes;
  });
  const auto end = std::find_if(begin, events.end(), [](const RingRecord& r) {
    return r.call == Call::malloc && r.size_bytes == end_mark_bytes;
  });
  if (end == events.end() || end - begin < 2) {
    return {};
  }
  return {begin + 2, end};  // behind the mark's free
}

std::string told(const RingRecord& e) {
  std::string text = name_of(e.call);
  if (e.phase == Phase::begin) {
    text += " begin";
  } else if (e.phase == Phase::end) {
    text += " end";
  } else if (e.phase == Phase::failed) {
    text += " failed";
  }
  if (e.size_bytes != 0 || is_acquire(e.call) || is_realloc(e.call)) {
    text += e.size_bytes == UINT64_MAX ? " most" : " " + std::to_string(e.size_bytes);
  }
  if (e.alignment != 0) {
    text += " @" + std::to_string(e.alignment);
  }
  const bool has_block = e.call != Call::malloc_trim && e.phase != Phase::failed;
  if (has_block && e.address == 0) {
    text += " null";
  }
  return text;
}

std::vector<std::string> told(const std::vector<RingRecord>& events) {
  std::vector<std::string> lines;
  std::transform(events.begin(), events.end(), std::back_inserter(lines),
                 [](const RingRecord& e) { return told(e); });
  return lines;
}

Life live_through(const std::vector<RingRecord>& events) {
  Life life;
  std::set<std::uint64_t> live;
  const auto is_born = [&](std::uint64_t address) {
    life.births += 1;
    life.born_twice += live.insert(address).second ? 0 : 1;
  };
  const auto dies = [&](std::uint64_t address) {
    life.deaths += 1;
    life.died_unborn += live.erase(address) == 1 ? 0 : 1;
  };
  std::uint64_t resized = 0;
  for (const RingRecord& e : events) {
    if (is_acquire(e.call)) {
      e.address != 0 ? is_born(e.address) : void(life.failed += 1);
    } else if (is_release(e.call)) {
      e.address != 0 ? dies(e.address) : void();
    } else if (e.phase == Phase::begin) {
      resized = e.address;
      resized != 0 ? dies(resized) : void();
    } else if (e.phase == Phase::end) {
      e.address != 0 ? is_born(e.address) : void();
    } else if (e.phase == Phase::failed) {
      life.failed += 1;
      if (resized != 0) {
        is_born(resized);  // it lives on
        life.births -= 1;
        life.deaths -= 1;
      }
    }
  }
  life.live_at_end = live.size();
  return life;
}

}  // namespace heaptape::preload_test
