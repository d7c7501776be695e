#include "analyzers/render/html/html.h"

namespace heaptape::analyzers {

const std::vector<Definition>& glossary() {
  static const std::vector<Definition> terms = {
      {"call", "call",
       "One call of the allocator by the program: malloc, calloc, realloc, free, operator new and so on. A "
       "call "
       "made inside another one is not counted."},
      {"block", "block", "What one successful allocating call returned. A realloc carries a block on."},
      {"requested", "requested",
       "Bytes the program asked for, exactly as asked. Nothing that an allocator adds is in it, so it is the "
       "same "
       "for every allocator."},
      {"total_requested", "requested in all",
       "Sum of the sizes of all successful requests. A realloc counts with its whole new size."},
      {"live", "live", "Allocated and not yet released. Live bytes are requested bytes."},
      {"peak_live", "peak live",
       "The largest sum of requested bytes of live blocks at any moment of the run."},
      {"end_live", "live at the end",
       "Blocks never released before the tape ended. Not leaks by themselves: programs keep what they need, "
       "and a "
       "tape may end before its program."},
      {"lifetime", "lifetime",
       "From the call that made a block to the call that released it, counted in calls of all threads and in "
       "time. "
       "Blocks still live at the end have none."},
      {"foreign", "released by another thread",
       "The thread that released the block is not the one that allocated (or last resized) it. Allocators "
       "with "
       "caches per thread must hand such memory back across threads."},
      {"median", "median", "Half of the values are at most this; right within 1.6 %."},
      {"failed", "failed calls", "Calls that returned a null pointer instead of memory."},
      {"program_resident", "resident memory of the program",
       "The program's resident set as the recorder saw it from outside. 'Anonymous' leaves out files and "
       "shared "
       "pages: heaps and stacks are in it."},
      {"net_time", "time per call",
       "Nanoseconds per allocator call, less what the same replay costs with an allocator that does nothing; "
       "the "
       "median of several runs, and the interval that holds the true median with 95 % confidence."},
      {"speed", "speed",
       "How many times as fast as the baseline, with its 95 % interval. An interval that holds 1 is no "
       "significant difference."},
      {"not_significant", "n.s.",
       "No significant difference: the interval of the speed holds 1, so the runs cannot tell the two "
       "apart."},
      {"resident", "resident",
       "Bytes of physical memory held by the allocator at an instant: private anonymous memory less what it "
       "has "
       "marked free, plus shared memory that it made. What library and threads cost before the first call is "
       "not in it."},
      {"peak_resident", "peak resident", "The largest resident memory at any instant that was measured."},
      {"final_resident", "resident at the end", "Resident memory after the last call of the tape."},
      {"after_purge", "after purge",
       "Resident memory after the allocator was asked to give back what it can (malloc_trim and its likes)."},
      {"fixed", "fixed cost", "Resident memory before the first call: the library, its tables, its threads."},
      {"frag_mean", "fragmentation 1: mean",
       "The mean of resident over requested live bytes, less one, over the whole run."},
      {"frag_peak_live", "fragmentation 2: at peak live",
       "Resident over requested live bytes, less one, at the moment when most is live."},
      {"frag_peak_resident", "fragmentation 3: at peak resident",
       "Resident over requested live bytes, less one, at the moment when most is resident."},
      {"frag_peaks", "fragmentation 4: peak over peak",
       "The largest resident memory over the largest requested live bytes, less one, whenever each was."},
      {"occupancy", "page occupancy",
       "Requested live bytes over the bytes of all 4 KiB pages that hold a live block, where most is live: "
       "the "
       "share of each such page that is really used."},
      {"contradiction", "contradiction",
       "Memory was handed out that was still live by this tape: a release is missing from it. A complete "
       "recording "
       "has none."},
      {"repair", "repair",
       "A call that the order of time stamps put before the release it must have followed, and that was "
       "moved "
       "behind it. Usual with threads."},
      {"unknown", "unknown release",
       "A release of memory that was never seen allocated: born before the recording, or its allocation is "
       "lost."},
      {"gap", "gap", "A place where the recorder had to drop calls because it could not keep up."},
  };
  return terms;
}

}  // namespace heaptape::analyzers
