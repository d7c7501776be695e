#include "replayer/heaps/arena.h"

#include <cstring>
#include <new>

#include "replayer/heaps/arena_layout.h"

namespace heaptape::heaps {

namespace {

constexpr std::uintptr_t up(std::uintptr_t value, std::uintptr_t multiple) noexcept {
  return (value + multiple - 1) & ~(multiple - 1);
}

}  // namespace

Arena* Arena::create(void* memory, std::size_t size_bytes, Locking locking) noexcept {
  if (memory == nullptr || size_bytes < sizeof(Arena) + granule_bytes) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t end = begin + size_bytes;
  if (end < begin) return nullptr;
  const unsigned levels = SizeClass::of(size_bytes).level + 1;
  const std::uintptr_t here = up(begin, alignof(Arena));
  const std::uintptr_t tables = here + sizeof(Arena);
  constexpr std::size_t list_bytes = SizeClass::steps * sizeof(void*);
  const std::uintptr_t tables_bytes =
      up(levels * sizeof(std::uint32_t), alignof(Block*)) + levels * list_bytes;
  // Payloads are aligned, so size words lie one word below; the sentinel needs one, too.
  const std::uintptr_t first = up(tables + tables_bytes + word_bytes, granule_bytes) - word_bytes;
  if (end < word_bytes || first + smallest_block_bytes + word_bytes > end) return nullptr;
  const std::uintptr_t sentinel = first + ((end - word_bytes - first) & ~(granule_bytes - 1));
  return new (reinterpret_cast<void*>(here))
      Arena(reinterpret_cast<char*>(tables), reinterpret_cast<char*>(first),
            reinterpret_cast<char*>(sentinel), levels, locking);
}

Arena::Arena(char* tables, char* first, char* end, unsigned levels, Locking locking) noexcept
    : locking_(locking),
      levels_(levels),
      first_(first),
      end_(end),
      level_map_(0),
      step_maps_(reinterpret_cast<std::uint32_t*>(tables)),
      heads_(reinterpret_cast<Block**>(tables + up(levels * sizeof(std::uint32_t), alignof(Block*)))) {
  fill_with_one_free_block();
}

void Arena::fill_with_one_free_block() noexcept {
  level_map_ = 0;
  std::memset(step_maps_, 0, levels_ * sizeof *step_maps_);
  for (unsigned i = 0; i < levels_ * SizeClass::steps; ++i) heads_[i] = nullptr;
  Block* const whole = Block::at(first_);
  whole->word = static_cast<std::size_t>(end_ - first_) | Block::free_flag;
  whole->footer() = whole->size_bytes();
  // Of the sentinel only the size word exists.
  *reinterpret_cast<std::size_t*>(end_) = Block::previous_free_flag;
  link(whole);
}

Arena::Block*& Arena::head(unsigned level, unsigned step) const noexcept {
  return heads_[level * SizeClass::steps + step];
}

void Arena::link(Block* block) noexcept {
  const SizeClass at = SizeClass::of(block->size_bytes());
  Block*& first = head(at.level, at.step);
  block->next = first;
  block->previous = nullptr;
  if (first != nullptr) first->previous = block;
  first = block;
  level_map_ |= std::size_t{1} << at.level;
  step_maps_[at.level] |= std::uint32_t{1} << at.step;
}

void Arena::unlink(Block* block) noexcept {
  if (block->next != nullptr) block->next->previous = block->previous;
  if (block->previous != nullptr) {
    block->previous->next = block->next;
    return;
  }
  const SizeClass at = SizeClass::of(block->size_bytes());
  head(at.level, at.step) = block->next;
  if (block->next != nullptr) return;
  step_maps_[at.level] &= ~(std::uint32_t{1} << at.step);
  if (step_maps_[at.level] == 0) level_map_ &= ~(std::size_t{1} << at.level);
}

// A free block of at least that size, out of its list; null if there is none. Cost: two bit scans.
Arena::Block* Arena::take(std::size_t block_bytes) noexcept {
  SizeClass at = SizeClass::holding(block_bytes);
  if (at.level >= levels_) return take_from_own_class(block_bytes);
  std::uint32_t steps = step_maps_[at.level] & (~std::uint32_t{0} << at.step);
  if (steps == 0) {
    const std::size_t levels = level_map_ & ~((std::size_t{2} << at.level) - 1);
    if (levels == 0) return take_from_own_class(block_bytes);
    at.level = static_cast<unsigned>(std::countr_zero(levels));
    steps = step_maps_[at.level];
  }
  at.step = static_cast<unsigned>(std::countr_zero(steps));
  Block* const block = head(at.level, at.step);
  unlink(block);
  return block;
}

// Nearly exhausted: blocks of the request's own class may still be large enough. Looks at a fixed
// number of them, so that the time stays constant.
Arena::Block* Arena::take_from_own_class(std::size_t block_bytes) noexcept {
  constexpr int most_looks = 64;
  const SizeClass at = SizeClass::of(block_bytes);
  if (at.level >= levels_) return nullptr;
  Block* block = head(at.level, at.step);
  for (int i = 0; i < most_looks && block != nullptr; ++i, block = block->next) {
    if (block->size_bytes() < block_bytes) continue;
    unlink(block);
    return block;
  }
  return nullptr;
}

// Shortens a block that is in no list; what is cut off becomes free, merged with what follows.
void Arena::cut(Block* block, std::size_t block_bytes) noexcept {
  const std::size_t rest_bytes = block->size_bytes() - block_bytes;
  if (rest_bytes < smallest_block_bytes) return;
  block->set_size(block_bytes);
  Block* const rest = block->after();
  rest->word = rest_bytes;
  give_back(rest);
}

// Makes a block out of take() a live one of that size.
void* Arena::use(Block* block, std::size_t block_bytes) noexcept {
  block->word &= ~Block::free_flag;
  block->after()->word &= ~Block::previous_free_flag;
  cut(block, block_bytes);
  return block->payload();
}

// Makes a block free that is in no list, and merges it with free neighbours.
void Arena::give_back(Block* block) noexcept {
  std::size_t bytes = block->size_bytes();
  if (Block* const after = block->after(); after->is_free()) {
    unlink(after);
    bytes += after->size_bytes();
  }
  if (block->previous_is_free()) {
    block = block->before();
    unlink(block);
    bytes += block->size_bytes();
  }
  // The block before a free one is never free.
  block->word = bytes | Block::free_flag;
  block->footer() = bytes;
  block->after()->word |= Block::previous_free_flag;
  link(block);
}

void* Arena::allocate(std::size_t size_bytes) noexcept {
  const std::size_t block_bytes = block_bytes_for(size_bytes);
  if (block_bytes == 0) return nullptr;
  const Guard guard(*this);
  Block* const block = take(block_bytes);
  return block == nullptr ? nullptr : use(block, block_bytes);
}

void* Arena::allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes) noexcept {
  if (alignment_bytes == 0 || (alignment_bytes & (alignment_bytes - 1)) != 0) return nullptr;
  if (alignment_bytes <= default_alignment) return allocate(size_bytes);
  const std::size_t block_bytes = block_bytes_for(size_bytes);
  if (block_bytes == 0 || alignment_bytes > ~std::size_t{0} / 4) return nullptr;
  // Room to move the payload up to the alignment and leave a whole free block before it.
  const std::size_t most_bytes = block_bytes + alignment_bytes + smallest_block_bytes;
  const Guard guard(*this);
  Block* block = take(most_bytes);
  if (block == nullptr) return nullptr;
  const auto payload = reinterpret_cast<std::uintptr_t>(block->payload());
  std::size_t gap_bytes = up(payload, alignment_bytes) - payload;
  while (gap_bytes != 0 && gap_bytes < smallest_block_bytes) gap_bytes += alignment_bytes;
  if (gap_bytes != 0) {
    Block* const behind = Block::at(block->begin() + gap_bytes);
    behind->word = (block->size_bytes() - gap_bytes) | Block::free_flag | Block::previous_free_flag;
    block->word = gap_bytes | Block::free_flag | (block->word & Block::previous_free_flag);
    block->footer() = gap_bytes;
    link(block);
    block = behind;
  }
  return use(block, block_bytes);
}

void* Arena::allocate_zeroed(std::size_t count, std::size_t size_bytes) noexcept {
  if (size_bytes != 0 && count > ~std::size_t{0} / size_bytes) return nullptr;
  void* const block = allocate(count * size_bytes);
  if (block != nullptr) std::memset(block, 0, count * size_bytes);
  return block;
}

bool Arena::grow_in_place(Block* block, std::size_t block_bytes) noexcept {
  Block* const after = block->after();
  if (!after->is_free() || block->size_bytes() + after->size_bytes() < block_bytes) return false;
  unlink(after);
  block->set_size(block->size_bytes() + after->size_bytes());
  block->after()->word &= ~Block::previous_free_flag;
  cut(block, block_bytes);
  return true;
}

void* Arena::reallocate(void* payload, std::size_t size_bytes) noexcept {
  if (payload == nullptr) return allocate(size_bytes);
  const std::size_t block_bytes = block_bytes_for(size_bytes);
  if (block_bytes == 0) return nullptr;
  Block* const block = Block::of(payload);
  void* moved = nullptr;
  std::size_t kept_bytes = 0;
  {
    const Guard guard(*this);
    if (block->size_bytes() >= block_bytes) {
      cut(block, block_bytes);
      return payload;
    }
    if (grow_in_place(block, block_bytes)) return payload;
    Block* const other = take(block_bytes);
    if (other == nullptr) return nullptr;
    moved = use(other, block_bytes);
    kept_bytes = block->size_bytes() - word_bytes;
  }
  // Both blocks are live and the caller's: no lock while copying.
  std::memcpy(moved, payload, kept_bytes);
  release(payload);
  return moved;
}

void Arena::release(void* payload) noexcept {
  if (payload == nullptr) return;
  const Guard guard(*this);
  give_back(Block::of(payload));
}

std::size_t Arena::usable_size(const void* payload) const noexcept {
  if (payload == nullptr) return 0;
  const Guard guard(*this);  // a neighbour's release writes the flags beside the size
  return Block::of(payload)->size_bytes() - word_bytes;
}

bool Arena::owns(const void* address) const noexcept {
  const auto* const byte = static_cast<const char*>(address);
  return byte >= first_ && byte < end_;
}

void Arena::reset() noexcept {
  const Guard guard(*this);
  fill_with_one_free_block();
}

}  // namespace heaptape::heaps
