heaptape_test(heaps_test SOURCES heaps_arena_test.cpp LIBS heaptape::heaps)
