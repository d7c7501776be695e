// What a tape holds besides events: plain structs, the same for writer and reader.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/event.h"

namespace heaptape::format {

enum class TapeForm : std::uint8_t { recorded = 0, packed = 1 };
enum class ClockSource : std::uint8_t {
  tsc = 0,       // invariant time stamp counter
  sequence = 1,  // a shared sequence number: order exact, time from watermarks only
  none = 2,      // imported without time
};
enum class StackMode : std::uint8_t { none = 0, caller = 1 };

struct TapeHeader {
  TapeForm form = TapeForm::recorded;
  std::array<std::uint64_t, 2> tape_id{};  // random; a packed tape keeps its source's
  std::string heaptape_version;
  std::string program;  // path of the executable (/proc/PID/exe)
  std::vector<std::string> arguments;
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::string host_kernel;  // uname: sysname release machine
  std::string cpu_model;
  std::uint32_t cpus = 0;
  std::uint32_t page_size_bytes = 4096;
  std::uint64_t started_unix_ns = 0;
  ClockSource clock = ClockSource::tsc;
  std::uint64_t start_tick = 0;   // stamp that is time 0
  double ticks_per_second = 0.0;  // first estimate; watermarks give (tick, ns) pairs
  StackMode stacks = StackMode::none;
  std::string allocator;   // path of the library that served malloc; empty: unknown
  bool from_start = true;  // recorded since the program began
  bool keeps_addresses = true;
  std::string source;  // "recorded", "packed", "imported from ..."
};

struct ThreadInfo {
  ThreadIndex thread{};
  std::uint32_t tid = 0;  // the operating system's; may come back as another thread
  std::uint64_t start_tick = 0;
  std::uint64_t end_tick = 0;  // 0: not seen to end
  std::string name;
};

struct ModuleInfo {
  std::string path;
  std::string build_id;            // hex; empty: none
  std::uint64_t load_address = 0;  // lowest mapped address
  std::uint64_t size_bytes = 0;
  std::uint64_t load_bias = 0;  // add to the file's addresses
};

// The recorded program's memory, seen from outside by the collector.
struct ResidentSample {
  std::int64_t time_ns = 0;
  std::uint64_t resident_bytes = 0;   // whole resident set
  std::uint64_t anonymous_bytes = 0;  // resident less file and shared pages
};

struct Gap {  // events a thread dropped because its ring was full
  ThreadIndex thread{};
  std::uint64_t lost_events = 0;
  std::uint64_t stamp = 0;  // of the first event after the gap
};

struct Marker {
  std::int64_t time_ns = 0;
  std::string name;
};

// After this block, everything that was published before `tick` is on the tape.
struct Watermark {
  std::uint64_t tick = 0;
  std::int64_t time_ns = 0;  // since the recording began
};

enum class EndReason : std::uint8_t {
  unknown = 0,   // no footer: the tape was cut, or the collector died
  exited = 1,    // value = exit status; -1: nobody could tell
  killed = 2,    // value = signal number
  replaced = 3,  // exec: the process went on as another program, on another tape
  stopped = 4,   // the recording ended before the program did
};

struct RecorderStats {
  std::uint64_t stalls = 0;  // times a thread waited on a full ring
  std::uint64_t stalled_ns = 0;
  std::uint64_t dropped_events = 0;
  std::uint64_t own_allocations = 0;  // made by the recorder inside the program: must be 0
  std::uint64_t nested_calls = 0;     // allocator calls made inside an allocator call: not recorded
  std::uint64_t signal_losses = 0;    // calls in signal handlers that could not be recorded
  std::uint64_t lost_threads = 0;     // threads that found no ring
};

struct TapeFooter {
  EndReason reason = EndReason::unknown;
  std::int32_t value = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t events = 0;  // RecordedEvents (recorded) or Events (packed) on the tape
  RecorderStats recorder;
};

}  // namespace heaptape::format
