# Run with -DINPUT= -DOUTPUT= -DHEADER= -DNAME=: writes a C++ source that holds a text file as a
# std::string_view `heaptape::analyzers::NAME`, declared in HEADER.
file(READ "${INPUT}" text)
string(FIND "${text}" ")~~\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} holds the end mark of a raw string")
endif()
file(WRITE "${OUTPUT}" "// Made from ${INPUT} by cmake/EmbedText.cmake.
#include \"${HEADER}\"
namespace heaptape::analyzers {
const std::string_view ${NAME} = R\"~~(")
file(APPEND "${OUTPUT}" "${text}")
file(APPEND "${OUTPUT}" ")~~\";
}  // namespace heaptape::analyzers
")
