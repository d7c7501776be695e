// One event as one line of text or of JSON.
#pragma once

#include <string>

#include "format/event.h"

namespace heaptape::analyzers {

// Appends the line and its newline, to spare an allocation per event.
void append_event_text(std::string& out, const format::Event& e);
void append_event_json(std::string& out, const format::Event& e);

}  // namespace heaptape::analyzers
