// The words for orders, touching and methods: in options, tables and JSON alike.
#pragma once

#include <string_view>

#include "replayer/engine/protocol.h"
#include "replayer/plan/plan.h"

namespace heaptape::replayer {

[[nodiscard]] std::string_view name_of(Order order);
[[nodiscard]] std::string_view name_of(TouchMode touch);
[[nodiscard]] std::string_view name_of(HugePages huge_pages);
[[nodiscard]] std::string_view name_of(FootprintMethod method);

}  // namespace heaptape::replayer
