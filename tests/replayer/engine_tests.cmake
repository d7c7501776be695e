# The engine runs as the program that is shipped, never sanitised; the tests around it are.
add_library(heaptape_engine_harness STATIC engine_harness.cpp)
target_link_libraries(heaptape_engine_harness PUBLIC heaptape::plan)
target_compile_definitions(heaptape_engine_harness PRIVATE HEAPTAPE_ENGINE_PATH="$<TARGET_FILE:heaptape-engine>")
add_dependencies(heaptape_engine_harness heaptape-engine)

heaptape_test(engine_test SOURCES engine_null_test.cpp LIBS heaptape_engine_harness)
