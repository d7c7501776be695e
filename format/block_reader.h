// Reads single blocks that scan or index found, checking them again: the file may have changed.
//
// Every error names file and byte. One thread; several readers may share the file.
#pragma once

#include <vector>

#include "format/base/error.h"
#include "format/input.h"
#include "format/message.h"
#include "format/packed_events.h"
#include "format/recorded_events.h"
#include "format/scan.h"

namespace heaptape::format {

class BlockReader {
 public:
  explicit BlockReader(const InputFile& file) : file_(file), window_(file) {}

  // The payload; valid until the next call.
  [[nodiscard]] Result<PayloadView> read(const BlockPlace& place);
  // The events of a block, and what it says of them.
  [[nodiscard]] Result<RecordedBlock> read_recorded(const BlockPlace& place, RecordedDecoder& decoder,
                                                    std::vector<RecordedEvent>& events);
  // Begins a block of packed events; its payload stays until the next call.
  [[nodiscard]] Result<PackedBlock> read_packed(const BlockPlace& place, PackedDecoder& decoder);
  // `error` with file and byte in front.
  [[nodiscard]] Failure located(const BlockPlace& place, Error error) const;

 private:
  const InputFile& file_;
  FileWindow window_;
  Payload payload_;
};

}  // namespace heaptape::format
