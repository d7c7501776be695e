// Every form of operator new and operator delete once, called by name with arguments that the
// test knows.
#include <new>

#include "guest.h"

namespace {

void* kept(void* block) {
  keep(block);
  return block;
}

}  // namespace

int main() {
  using std::align_val_t;
  using std::nothrow;
  begin_marked();
  ::operator delete(kept(::operator new(201)));
  ::operator delete[](kept(::operator new[](202)));
  ::operator delete(kept(::operator new(203, nothrow)), nothrow);
  ::operator delete[](kept(::operator new[](204, nothrow)), nothrow);
  ::operator delete (kept(::operator new(205)), std::size_t{205});
  ::operator delete[](kept(::operator new[](206)), std::size_t{206});

  ::operator delete (kept(::operator new (207, align_val_t{64})), align_val_t{64});
  ::operator delete[](kept(::operator new[](208, align_val_t{128})), align_val_t{128});
  ::operator delete (kept(::operator new (209, align_val_t{32}, nothrow)), align_val_t{32}, nothrow);
  ::operator delete[](kept(::operator new[](210, align_val_t{256}, nothrow)), align_val_t{256}, nothrow);
  ::operator delete (kept(::operator new (211, align_val_t{64})), std::size_t{211}, align_val_t{64});
  ::operator delete[](kept(::operator new[](212, align_val_t{64})), std::size_t{212}, align_val_t{64});

  ::operator delete(nullptr);
  ::operator delete[](nullptr);
  end_marked();
}
