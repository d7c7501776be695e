#include "format/pack.h"

#include <unistd.h>

#include <utility>

namespace heaptape::format {
namespace {

// Everything of the source but its events and its footer.
Result<void> copy_rest(const TapeInfo& info, TapeWriter& writer) {
  for (const ThreadInfo& thread : info.threads) {
    HEAPTAPE_TRY(writer.thread(thread));
  }
  if (!info.modules.empty()) {
    HEAPTAPE_TRY(writer.modules(info.modules));
  }
  if (!info.resident.empty()) {
    HEAPTAPE_TRY(writer.resident(info.resident));
  }
  for (const Gap& gap : info.gaps) {
    HEAPTAPE_TRY(writer.gap(gap));
  }
  for (const Marker& marker : info.markers) {
    HEAPTAPE_TRY(writer.marker(marker));
  }
  return {};
}

Result<PackSummary> pack_into(const TapeReader& source, const std::filesystem::path& path,
                              const PackOptions& options) {
  const TapeInfo& info = source.info();
  TapeHeader header = info.header;
  header.form = TapeForm::packed;
  header.keeps_addresses = options.keep_addresses && info.header.keeps_addresses;
  if (header.source == "recorded") {
    header.source = "packed";
  }
  auto cursor = source.events();
  if (!cursor) {
    return Failure(cursor.error());
  }
  auto writer = TapeWriter::create(path, header, options.writer);
  if (!writer) {
    return Failure(writer.error());
  }
  HEAPTAPE_TRY(copy_rest(info, *writer));
  while (true) {
    const auto events = (*cursor)->next();
    if (!events) {
      return Failure(events.error());
    }
    if (events->empty()) {
      break;
    }
    HEAPTAPE_TRY(writer->append(*events));
    if (options.progress) {
      options.progress((*cursor)->progress());
    }
  }
  HEAPTAPE_TRY(writer->finish(info.footer, &(*cursor)->report(), &info.damage));
  return PackSummary{writer->events_written(), info.file_bytes, writer->bytes_written(),
                     header.keeps_addresses, (*cursor)->report()};
}

}  // namespace

Result<PackSummary> pack_tape(const TapeReader& source, const std::filesystem::path& path,
                              const PackOptions& options) {
  std::filesystem::path partial = path;
  partial += fmt::format(".{}.partial", ::getpid());
  auto packed = pack_into(source, partial, options);
  std::error_code error;
  if (packed) {
    std::filesystem::rename(partial, path, error);
    if (!error) {
      return packed;
    }
    packed = system_failure(fmt::format("cannot name the packed tape '{}'", path.string()), error.value());
  }
  std::filesystem::remove(partial, error);
  return packed;
}

}  // namespace heaptape::format
