# The engine runs as the program that is shipped, never sanitised; the tests around it are.
add_subdirectory(candidates)

add_library(heaptape_engine_harness STATIC engine_harness.cpp)
target_link_libraries(heaptape_engine_harness PUBLIC heaptape::plan)
target_compile_definitions(heaptape_engine_harness PRIVATE HEAPTAPE_ENGINE_PATH="$<TARGET_FILE:heaptape-engine>")
add_dependencies(heaptape_engine_harness heaptape-engine)

heaptape_test(engine_test
  SOURCES engine_null_test.cpp engine_candidates_test.cpp engine_determinism_test.cpp
  LIBS heaptape_engine_harness
  LABELS e2e)
foreach(candidate counting counting_preload mapping faulty)
  string(TOUPPER ${candidate} upper)
  target_compile_definitions(engine_test PRIVATE
    HEAPTAPE_CANDIDATE_${upper}="$<TARGET_FILE:heaptape_candidate_${candidate}>")
  add_dependencies(engine_test heaptape_candidate_${candidate})
endforeach()

# The engine's own sources once more, under the preset's sanitizer.
set(engine_folder ${CMAKE_SOURCE_DIR}/replayer/engine)
heaptape_test(engine_parts_test
  SOURCES engine_parts_test.cpp ${engine_folder}/footprint.cpp ${engine_folder}/live_pages.cpp
    ${engine_folder}/own_memory.cpp ${engine_folder}/plan_check.cpp ${engine_folder}/run.cpp ${engine_folder}/sync.cpp
  LIBS heaptape_engine_harness)

add_test(NAME Engine.LoopRefersToNothingButWhatIsListed
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/engine_symbols_test.sh
    "$<FILTER:$<TARGET_OBJECTS:heaptape_engine_parts>,INCLUDE,/run\\.cpp\\.o$>" $<TARGET_FILE:heaptape-engine>
    ${CMAKE_CURRENT_SOURCE_DIR}/engine_allowed_symbols.txt)
set_tests_properties(Engine.LoopRefersToNothingButWhatIsListed PROPERTIES LABELS unit)
