#include "recorder/preload/bootstrap.h"

#include <atomic>
#include <cstdint>

#include "recorder/preload/sys.h"

#include "recorder/preload/poison.h"

namespace heaptape::preload::bootstrap {
namespace {

constexpr std::size_t first_chunk_bytes = std::size_t{64} << 10;
constexpr std::size_t unit_bytes = 16;  // every block begins and ends at a multiple of this
constexpr int max_chunks = 40;          // doubling from 64 KiB, this is more than an address space

// In front of each block.
struct Header {
  std::size_t size_bytes;
  std::size_t next_offset;  // of the next header in this chunk
};
static_assert(sizeof(Header) == unit_bytes);

// At the begin of each chunk's mapping.
struct Chunk {
  std::size_t bytes;
  std::size_t used;  // the next header goes here
};
static_assert(sizeof(Chunk) == unit_bytes);

// Filled in order. Readers may come without the lock: a chunk is complete before it is stored.
constinit std::atomic<Chunk*> chunks[max_chunks] = {};
constinit std::atomic<bool> locked = false;  // guards bumping; partner: itself

class Lock {
 public:
  Lock() noexcept {
    while (locked.exchange(true, std::memory_order_acquire)) {
      sys::raw(SYS_sched_yield);
    }
  }
  ~Lock() { locked.store(false, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

constexpr std::size_t round_up(std::size_t n, std::size_t unit) noexcept {
  return (n + unit - 1) & ~(unit - 1);
}

unsigned char* begin_of(Chunk* c) noexcept { return reinterpret_cast<unsigned char*>(c); }
Header& header_at(Chunk* c, std::size_t offset) noexcept {
  return *reinterpret_cast<Header*>(begin_of(c) + offset);
}

void* take_from(Chunk* c, std::size_t size, std::size_t alignment) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(c);
  const std::size_t block = round_up(base + c->used + sizeof(Header), alignment) - base;
  if (block > c->bytes || size > c->bytes - block) {
    return nullptr;
  }
  const std::size_t end = round_up(block + size, unit_bytes);
  if (end > c->bytes) {
    return nullptr;
  }
  // The gap that alignment leaves belongs to no block: the walk starts each block at its own header,
  // which is always directly in front of it, so an empty block fills the gap.
  const std::size_t header = block - sizeof(Header);
  if (header != c->used) {
    header_at(c, c->used) = {.size_bytes = SIZE_MAX, .next_offset = header};
  }
  header_at(c, header) = {.size_bytes = size, .next_offset = end};
  c->used = end;
  return begin_of(c) + block;
}

}  // namespace

void* allocate(std::size_t size_bytes, std::size_t alignment) noexcept {
  constexpr std::size_t most = SIZE_MAX / 4;
  if (alignment < unit_bytes) {
    alignment = unit_bytes;
  }
  if (size_bytes > most || alignment > most || (alignment & (alignment - 1)) != 0) {
    return nullptr;
  }
  const Lock lock;
  std::size_t bytes = first_chunk_bytes;
  for (auto& slot : chunks) {
    Chunk* c = slot.load(std::memory_order_relaxed);
    if (c == nullptr) {
      const std::size_t needed = round_up(size_bytes + alignment + sizeof(Chunk) + sizeof(Header), 4096);
      bytes = bytes < needed ? needed : bytes;
      c = static_cast<Chunk*>(sys::map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1));
      if (c == nullptr) {
        return nullptr;
      }
      *c = {.bytes = bytes, .used = sizeof(Chunk)};
      slot.store(c, std::memory_order_release);  // partner: the acquire load in owns()
    }
    if (void* const p = take_from(c, size_bytes, alignment); p != nullptr) {
      return p;
    }
    bytes = c->bytes * 2;
  }
  return nullptr;
}

bool used() noexcept { return chunks[0].load(std::memory_order_acquire) != nullptr; }

bool owns(const void* p) noexcept {
  for (const auto& slot : chunks) {
    Chunk* const c = slot.load(std::memory_order_acquire);  // partner: the release store in allocate()
    if (c == nullptr) {
      return false;
    }
    if (reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(c) < c->bytes) {
      return true;
    }
  }
  return false;
}

std::size_t size_bytes(const void* p) noexcept { return (static_cast<const Header*>(p) - 1)->size_bytes; }

void for_each(void (*visit)(void*, std::size_t, void*) noexcept, void* context) noexcept {
  const Lock lock;
  for (auto& slot : chunks) {
    Chunk* const c = slot.load(std::memory_order_relaxed);
    if (c == nullptr) {
      return;
    }
    for (std::size_t at = sizeof(Chunk); at < c->used; at = header_at(c, at).next_offset) {
      if (header_at(c, at).size_bytes != SIZE_MAX) {
        visit(&header_at(c, at) + 1, header_at(c, at).size_bytes, context);
      }
    }
  }
}

}  // namespace heaptape::preload::bootstrap
