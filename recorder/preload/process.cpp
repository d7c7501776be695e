#include "recorder/preload/process.h"

#include <pthread.h>

#include "recorder/preload/bootstrap.h"
#include "recorder/preload/handshake.h"
#include "recorder/preload/real.h"
#include "recorder/preload/record.h"
#include "recorder/preload/sys.h"

#include "recorder/preload/poison.h"

extern "C" [[gnu::weak]] char __libc_single_threaded;  // glibc 2.32 and later

namespace heaptape::preload {

using ring::RingState;
using ring::SegmentView;

namespace marks {
constinit const Slot unattached{.outer = ~std::uintptr_t{0}};
constinit const Slot attaching{.outer = ~std::uintptr_t{0}};
constinit const Slot resolving{.outer = ~std::uintptr_t{0}};
constinit const Slot lost{.outer = ~std::uintptr_t{0}};
constinit const Slot off{.outer = ~std::uintptr_t{0}};
}  // namespace marks

__thread Slot* current = const_cast<Slot*>(&marks::unattached);

namespace {

constexpr char never_true = 0;
constexpr std::uint32_t slot_count = 8192;
constexpr std::uint64_t ms_ns = 1'000'000;
constexpr std::uint64_t heartbeat_limit_ns = 1000 * ms_ns;
constexpr unsigned direct_keys = 32;           // glibc allocates for values of later keys
constexpr std::uint8_t destructor_rounds = 4;  // PTHREAD_DESTRUCTOR_ITERATIONS of glibc

enum class Phase : std::uint32_t { fresh = 0, connecting = 1, on = 2, off = 3 };

// Zero in a forked child.
struct Area {
  std::atomic<Phase> phase;  // release/acquire: `segment` is valid once it is `on`
  SegmentView segment;
  std::atomic<std::uint32_t> next_ring;  // where to look for a free ring first
  alignas(ring::page_bytes) Slot slots[slot_count];
};

// Of the image, kept over fork. (The one global object of the project: malloc has no context argument.)
struct Image {
  std::atomic<Area*> area = nullptr;  // release/acquire: mapped and advised
  std::atomic<bool> unusable = false;
  std::atomic<std::uint32_t> next_slot = 0;  // not wiped: a child starts behind the slots of its parent
  std::atomic<bool> bootstrap_told = false;
  std::atomic<std::uint64_t> early_own_allocations = 0;  // before there was a page to count them in
  // Written by the thread that is in phase `connecting`.
  bool name_known = false;
  bool asked_before = false;
  bool key_tried = false;
  bool has_key = false;
  pthread_key_t key = 0;
  SocketName name;
};
constinit Image image;

Area* find_area() noexcept {
  Area* area = image.area.load(std::memory_order_acquire);
  if (area != nullptr || image.unusable.load(std::memory_order_relaxed)) {
    return area;
  }
  void* const memory = sys::map(sizeof(Area), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == nullptr || !sys::advise(memory, sizeof(Area), MADV_WIPEONFORK)) {
    // Without the wiping a child would write into its parent's rings: rather nothing at all.
    if (memory != nullptr) {
      sys::unmap(memory, sizeof(Area));
    }
    image.unusable.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  auto* const fresh = static_cast<Area*>(memory);
  if (image.area.compare_exchange_strong(area, fresh, std::memory_order_acq_rel)) {
    return fresh;
  }
  sys::unmap(memory, sizeof(Area));
  return area;
}

// The area of a process that records; null otherwise.
Area* recording_area() noexcept {
  Area* const area = image.area.load(std::memory_order_acquire);
  return area != nullptr && area->phase.load(std::memory_order_acquire) == Phase::on ? area : nullptr;
}

extern "C" void heaptape_thread_ends(void* value) noexcept;

// Asks the collector. `fresh` again: too early to know.
Phase connect(Area& area) noexcept {
  if (!image.name_known) {
    const EnvironmentStatus s = read_environment(image.name);
    if (s == EnvironmentStatus::not_ready) {
      return Phase::fresh;
    }
    image.name_known = true;
  }
  if (image.name.length == 0) {
    return Phase::off;
  }
  const ring::Origin origin = image.asked_before ? ring::Origin::forked : ring::Origin::image;
  image.asked_before = true;
  SegmentView segment;
  if (request_segment(image.name, origin, segment) != HandshakeStatus::mapped) {
    return Phase::off;
  }
  if (!image.key_tried) {
    image.key_tried = true;
    image.has_key = pthread_key_create(&image.key, heaptape_thread_ends) == 0 && image.key < direct_keys;
  }
  if (&__libc_single_threaded != nullptr && segment.control().clock == ring::ClockSource::tsc) {
    single_threaded.store(&__libc_single_threaded, std::memory_order_relaxed);
  }
  segment.control().own_allocations.fetch_add(image.early_own_allocations.exchange(0));
  area.segment = segment;
  return Phase::on;
}

// Connects, or waits for the thread that is connecting: that one makes system calls only, holds no lock and
// gives up after some seconds.
Phase connected(Area& area) noexcept {
  for (;;) {
    Phase phase = area.phase.load(std::memory_order_acquire);
    if (phase == Phase::on || phase == Phase::off) {
      return phase;
    }
    if (phase == Phase::fresh &&
        area.phase.compare_exchange_strong(phase, Phase::connecting, std::memory_order_acquire)) {
      phase = connect(area);
      area.phase.store(phase, std::memory_order_release);
      return phase;
    }
    sys::raw(SYS_sched_yield);
  }
}

// Its thread is gone, and its ring no longer that thread's: so the collector found.
bool is_abandoned(const Area& area, const Slot& slot, std::uint32_t owner) noexcept {
  const std::uint32_t ring = slot.ring.load(std::memory_order_relaxed);
  if ((owner & slot_pending) != 0 || ring >= area.segment.ring_count()) {
    return false;
  }
  // Partner: the collector's release store of another state.
  const auto state = static_cast<RingState>(area.segment.state(ring).load(std::memory_order_acquire));
  return (state != RingState::claimed && state != RingState::ending) ||
         area.segment.ring(ring).header.owner_tid.load(std::memory_order_relaxed) != owner;
}

// Owned by this thread, pending until publish_slot().
Slot* claim_slot(Area& area, std::uint32_t tid) noexcept {
  const std::uint32_t start = image.next_slot.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < slot_count; ++i) {
    Slot& slot = area.slots[(start + i) % slot_count];
    std::uint32_t owner = slot.owner.load(std::memory_order_acquire);  // partner: publish_slot()
    if ((owner == 0 || is_abandoned(area, slot, owner)) &&
        // Partner: the release store in free_slot().
        slot.owner.compare_exchange_strong(owner, tid | slot_pending, std::memory_order_acquire)) {
      return &slot;
    }
  }
  return nullptr;
}
void publish_slot(Slot& slot, std::uint32_t tid) noexcept {
  slot.owner.store(tid, std::memory_order_release);
}
void free_slot(Slot& slot) noexcept { slot.owner.store(0, std::memory_order_release); }

std::uint32_t claim_ring(Area& area, std::uint32_t tid) noexcept {
  const std::uint32_t start = area.next_ring.fetch_add(1, std::memory_order_relaxed);
  return ring::claim_ring(area.segment, start, tid);
}

// Waits until the collector has made room or rings, a while at most. False: it will not come.
class Stall {
 public:
  explicit Stall(Area& area) noexcept
      : area_(area), begin_ns_(sys::monotonic_ns()), last_beat_ns_(begin_ns_), heartbeat_(heartbeat()) {
    area.segment.control().waiting_producers.fetch_add(1, std::memory_order_seq_cst);
  }
  ~Stall() {
    ring::Control& c = area_.segment.control();
    c.waiting_producers.fetch_sub(1, std::memory_order_relaxed);
    c.stalls.fetch_add(1, std::memory_order_relaxed);
    c.stalled_ns.fetch_add(sys::monotonic_ns() - begin_ns_, std::memory_order_relaxed);
  }
  Stall(const Stall&) = delete;
  Stall& operator=(const Stall&) = delete;

  // To be read before looking whether there is room: no wake-up after it is missed.
  [[nodiscard]] std::uint32_t ticket() const noexcept {
    return area_.segment.control().room_sequence.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool wait(std::uint32_t ticket) noexcept {
    wake_collector();
    sys::futex_wait(area_.segment.control().room_sequence, ticket, 20 * ms_ns);
    const std::uint64_t now = sys::monotonic_ns();
    if (const std::uint64_t beat = heartbeat(); beat != heartbeat_) {
      heartbeat_ = beat;
      last_beat_ns_ = now;
    } else if (now - last_beat_ns_ > heartbeat_limit_ns) {
      last_beat_ns_ = now;
      return collector_listens(image.name);
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t heartbeat() const noexcept {
    return area_.segment.control().heartbeat.load(std::memory_order_relaxed);
  }
  Area& area_;
  std::uint64_t begin_ns_;
  std::uint64_t last_beat_ns_;
  std::uint64_t heartbeat_;
};

bool is_stopped(const Area& area) noexcept {
  return area.segment.control().recording.load(std::memory_order_relaxed) !=
         static_cast<std::uint32_t>(ring::Recording::on);
}
void stop_for_good(Area& area) noexcept {
  area.phase.store(Phase::off, std::memory_order_release);
  current = const_cast<Slot*>(&marks::off);
}

// A ring for a thread that has none; ring_count if there will be none.
std::uint32_t first_ring(Area& area, std::uint32_t tid) noexcept {
  const std::uint32_t none = area.segment.ring_count();
  std::uint32_t ring = claim_ring(area, tid);
  ring::Control& c = area.segment.control();
  if (ring != none || c.overflow == ring::Overflow::drop) {
    return ring;
  }
  Stall stall(area);
  for (;;) {
    const std::uint32_t ticket = stall.ticket();
    ring = claim_ring(area, tid);
    if (ring != none || is_stopped(area) || c.exhausted.load(std::memory_order_relaxed) != 0 ||
        !stall.wait(ticket)) {
      return ring;
    }
  }
}

void inherit(Slot& slot, const Slot& before) noexcept {
  slot.outer = before.outer;
  slot.released = before.released;
  slot.outer_event = before.outer_event;
  slot.described = before.described;
}

void record_bootstrap(void* p, std::size_t size_bytes, void* context) noexcept {
  auto& slot = *static_cast<Slot*>(context);
  const ring::RawEvent e{.call = ring::Call::malloc,
                         .address = reinterpret_cast<std::uintptr_t>(p),
                         .size_bytes = size_bytes,
                         .stamp = acquire_stamp(slot)};
  (void)slot.writer.write(e);  // a fresh ring has room for these few
}

// A slot with an open ring for this thread; null: `current` is set to the mark that says why.
Slot* start_thread(Area& area) noexcept {
  const std::uint32_t tid = sys::thread_id();
  Slot* const slot = claim_slot(area, tid);
  const std::uint32_t ring = slot != nullptr ? first_ring(area, tid) : area.segment.ring_count();
  if (ring == area.segment.ring_count()) {
    if (slot != nullptr) {
      free_slot(*slot);
    }
    count(Counter::lost_threads);
    return nullptr;
  }
  ring::Control& c = area.segment.control();
  slot->outer = 0;
  slot->clock_word = &c.clock_word;
  slot->released = 0;
  slot->uses_tsc = c.clock == ring::ClockSource::tsc;
  slot->copies_clock = *single_threaded.load(std::memory_order_relaxed);
  slot->in_slow_path = false;
  slot->destructor_passes = 0;
  slot->described = false;
  slot->nested_result = 0;
  slot->nested_calls = 0;
  slot->tid = tid;
  slot->ring.store(ring, std::memory_order_relaxed);
  publish_slot(*slot, tid);
  slot->writer.open(area.segment.ring(ring), c.stacks == ring::Stacks::caller);
  (void)slot->writer.start(tid, acquire_stamp(*slot));  // a claimed ring is empty
  if (image.has_key) {
    pthread_setspecific(image.key, slot);
  }
  return slot;
}

extern "C" void heaptape_thread_ends(void* /*value*/) noexcept {
  Slot* const slot = current;
  Area* const area = recording_area();
  if (is_mark(slot) || !slot->writer.is_open() || area == nullptr) {
    return;
  }
  // Other destructors may still allocate, for as many rounds as there are, and the C library frees things
  // behind the last: so the thread keeps its slot and ring, and the collector takes the ring back when the
  // thread is gone. It need not look for that before the last round.
  if (++slot->destructor_passes < destructor_rounds) {
    pthread_setspecific(image.key, slot);
    return;
  }
  count(Counter::nested_calls, slot->nested_calls);
  slot->nested_calls = 0;
  ring::leave_ring(area->segment, slot->ring.load(std::memory_order_relaxed), RingState::ending);
}

}  // namespace

constinit std::atomic<const volatile char*> single_threaded = &never_true;

bool attach_thread() noexcept {
  resolve_real_functions();
  const sys::SignalsBlocked blocked;
  Slot* const before = current;
  current = const_cast<Slot*>(&marks::attaching);
  Area* const area = find_area();
  const Phase phase = area != nullptr ? connected(*area) : Phase::off;
  if (phase != Phase::on) {
    current = const_cast<Slot*>(phase == Phase::fresh ? &marks::unattached : &marks::off);
    return false;
  }
  if (is_stopped(*area)) {
    stop_for_good(*area);
    return false;
  }
  Slot* const slot = start_thread(*area);
  if (slot == nullptr) {
    current = const_cast<Slot*>(&marks::lost);
    return false;
  }
  if (before == &marks::unattached && !image.bootstrap_told.exchange(true)) {
    bootstrap::for_each(record_bootstrap, slot);
  }
  if (!is_mark(before)) {
    inherit(*slot, *before);
  }
  current = slot;
  return true;
}

RoomStatus make_room(Slot& slot, std::uint64_t stamp) noexcept {
  Area* const area = recording_area();
  if (area == nullptr || is_stopped(*area)) {
    if (area != nullptr) {
      stop_for_good(*area);
    }
    current = const_cast<Slot*>(&marks::off);
    return RoomStatus::none;
  }
  const auto chain = [&]() noexcept {
    const sys::SignalsBlocked blocked;
    const std::uint32_t next = claim_ring(*area, slot.tid);
    if (next == area->segment.ring_count()) {
      return false;
    }
    const std::uint32_t from = slot.ring.load(std::memory_order_relaxed);
    const bool sites = area->segment.control().stacks == ring::Stacks::caller;
    slot.writer.jump(next, stamp);
    slot.ring.store(next,
                    std::memory_order_release);  // before the old ring is given back: see is_abandoned()
    ring::leave_ring(area->segment, from, RingState::chained);
    slot.writer.open(area->segment.ring(next), sites);
    if (slot.destructor_passes == destructor_rounds) {
      ring::leave_ring(area->segment, next, RingState::ending);
    }
    return slot.writer.carry_on(from, stamp) == ring::WriteStatus::ok;
  };
  if (chain()) {
    wake_collector();
    return RoomStatus::chained;
  }
  if (area->segment.control().overflow == ring::Overflow::drop) {
    wake_collector();
    return RoomStatus::none;
  }
  Stall stall(*area);
  for (;;) {
    const std::uint32_t ticket = stall.ticket();
    if (slot.writer.has_room()) {
      return RoomStatus::waited;
    }
    if (chain()) {
      return RoomStatus::chained;
    }
    if (is_stopped(*area) || !stall.wait(ticket)) {
      stop_for_good(*area);
      return RoomStatus::none;
    }
  }
}

bool is_fresh_process() noexcept {
  Area* const area = image.area.load(std::memory_order_acquire);
  return area == nullptr || area->phase.load(std::memory_order_acquire) == Phase::fresh;
}

void wake_collector() noexcept {
  Area* const area = recording_area();
  if (area == nullptr) {
    return;
  }
  // Partner: the collector's store of 1 before it sleeps; it looks at the rings once more after that.
  std::atomic<std::uint32_t>& dozes = area->segment.control().collector_dozes;
  if (dozes.load(std::memory_order_seq_cst) == 1 && dozes.exchange(0, std::memory_order_seq_cst) == 1) {
    sys::futex_wake_all(dozes);
  }
}

std::uint64_t sequence_stamp() noexcept {
  Area* const area = recording_area();
  return area == nullptr ? 0 : area->segment.control().sequence.fetch_add(1, std::memory_order_seq_cst);
}

void count(Counter counter, std::uint64_t n) noexcept {
  Area* const area = recording_area();
  if (area == nullptr) {
    if (counter == Counter::own_allocations) {
      image.early_own_allocations.fetch_add(n, std::memory_order_relaxed);
    }
    return;
  }
  ring::Control& c = area->segment.control();
  ring::Word* const words[] = {&c.own_allocations, &c.nested_calls, &c.signal_losses, &c.lost_threads,
                               &c.dropped};
  words[static_cast<unsigned>(counter)]->fetch_add(n, std::memory_order_relaxed);
}

}  // namespace heaptape::preload

// Programs that never allocate are recorded too.
[[gnu::constructor(101)]] static void heaptape_start() {
  if (heaptape::preload::current == &heaptape::preload::marks::unattached) {
    (void)heaptape::preload::attach_thread();
  }
}
