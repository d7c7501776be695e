# One interface library carries the warnings and the sanitizers, so that no target forgets them.
add_library(heaptape_options INTERFACE)
target_compile_options(heaptape_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 sees overlaps in std::string that are not there (GCC bug 105651).
  target_compile_options(heaptape_options INTERFACE -Wno-restrict)
endif()
target_include_directories(heaptape_options INTERFACE ${CMAKE_SOURCE_DIR})

# The preload and the engine must not carry a sanitizer's runtime: the first runs inside foreign
# programs, the second measures memory. They link heaptape_options only.
add_library(heaptape_instrumented INTERFACE)
target_link_libraries(heaptape_instrumented INTERFACE heaptape_options)
if(HEAPTAPE_SANITIZE)
  target_compile_options(heaptape_instrumented INTERFACE
    -fsanitize=${HEAPTAPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(heaptape_instrumented INTERFACE -fsanitize=${HEAPTAPE_SANITIZE})
endif()
if(HEAPTAPE_COVERAGE)
  target_compile_options(heaptape_instrumented INTERFACE --coverage)
  target_link_options(heaptape_instrumented INTERFACE --coverage)
endif()

# heaptape_library(NAME SOURCES...): a static library of one folder, alias heaptape::NAME.
function(heaptape_library name)
  add_library(heaptape_${name} STATIC ${ARGN})
  add_library(heaptape::${name} ALIAS heaptape_${name})
  target_link_libraries(heaptape_${name} PUBLIC heaptape_instrumented)
endfunction()

# heaptape_test(NAME SOURCES... LIBS libs...): a GoogleTest program; each TEST becomes a ctest test.
function(heaptape_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} heaptape_instrumented GTest::gmock GTest::gtest_main)
  set(labels ${ARG_LABELS})
  if(NOT labels)
    set(labels unit)
  endif()
  foreach(label ${labels})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})  # so that a preset can build the tests that it runs, and no more
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${labels}" TIMEOUT 600)
endfunction()
