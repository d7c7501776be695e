#include "analyzers/render/json.h"

#include <fmt/format.h>

namespace heaptape::analyzers {

Json document(std::string_view name, int version) {
  Json json = Json::object();
  json["schema"] = fmt::format("heaptape.{}/{}", name, version);
  return json;
}

std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace heaptape::analyzers
