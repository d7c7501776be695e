// What /proc tells about a process, read from outside.
//
// Guarantees: never waits, never fails loudly: a process that is gone (or not ours to look at)
// yields empty results. Text from /proc is the recorded program's to choose: it is copied, bounded,
// never trusted to be well formed. Costs one to a few system calls each, 2 to 200 microseconds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heaptape::collector {

struct Mapping {  // one line of /proc/PID/maps that maps a file
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  bool executable = false;
  std::string path;  // as /proc gives it, perhaps with " (deleted)"
};

struct MemoryUse {
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;
};

[[nodiscard]] std::string read_proc_file(pid_t pid, std::string_view name);
[[nodiscard]] std::string executable_path(pid_t pid);  // /proc/PID/exe; empty: unknown
// Device and inode of the executable: changes with exec. 0: unknown.
[[nodiscard]] std::uint64_t executable_identity(pid_t pid);
[[nodiscard]] std::vector<std::string> command_line(pid_t pid);
// The program's name as people know it: comm, unshortened where path or arguments show how.
[[nodiscard]] std::string program_name(pid_t pid);
[[nodiscard]] pid_t parent_of(pid_t pid);                   // 0: unknown
[[nodiscard]] std::optional<int> zombie_status(pid_t pid);  // as wait gives it
[[nodiscard]] std::string thread_name(pid_t pid, pid_t tid);
// Both numbers as we see them. Costs one system call.
[[nodiscard]] bool thread_exists(pid_t pid, pid_t tid);
// The thread numbers of a process in a pid namespace of its own, as it sees them; empty: cannot tell.
[[nodiscard]] std::vector<std::uint32_t> threads_by_inner_number(pid_t pid);
[[nodiscard]] std::optional<MemoryUse> memory_use(pid_t pid);
[[nodiscard]] std::vector<Mapping> file_mappings(pid_t pid);
// Processes of this user whose environment holds `entry` ("NAME=value").
[[nodiscard]] std::vector<pid_t> processes_with(std::string_view entry);

// For tests: the parsers alone.
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);
[[nodiscard]] std::string full_program_name(std::string_view comm, std::string_view executable,
                                            const std::vector<std::string>& arguments);

}  // namespace heaptape::collector
