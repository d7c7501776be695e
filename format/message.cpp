#include "format/message.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <kj/io.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trace.capnp.h"

namespace heaptape::format {
namespace {

// ---- writing

void finish(capnp::MessageBuilder& message, Payload& out) {
  out.resize(capnp::computeSerializedSizeInWords(message));
  auto* bytes = reinterpret_cast<kj::byte*>(out.data());
  kj::ArrayOutputStream stream(kj::arrayPtr(bytes, out.size() * sizeof(std::uint64_t)));
  capnp::writeMessage(stream, message);
}

capnp::Data::Reader bytes_of(std::string_view text) {
  return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
}

void set(wire::Column::Builder to, const Column& column) {
  to.setId(column.id);
  to.setCoding(column.coding);
  to.setRawSize(column.raw_size_bytes);
  to.setData({reinterpret_cast<const kj::byte*>(column.data.data()), column.data.size()});
}

// So that a block of events is one segment.
unsigned first_segment_words(std::size_t entries, std::span<const Column> columns) {
  std::size_t words = 64 + entries * 4;
  for (const Column& column : columns) {
    words += 4 + column.data.size() / sizeof(std::uint64_t);
  }
  return static_cast<unsigned>(words);
}

template <typename ListBuilder>
void set_all(ListBuilder list, std::span<const Column> columns) {
  for (unsigned i = 0; i < list.size(); ++i) {
    set(list[i], columns[i]);
  }
}

unsigned size_of(std::size_t n) { return static_cast<unsigned>(n); }

// ---- reading

std::string text(capnp::Data::Reader bytes) {
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

Column column(wire::Column::Reader from) {
  const capnp::Data::Reader bytes = from.getData();
  return {from.getId(), from.getCoding(), from.getRawSize(),
          std::as_bytes(std::span(bytes.begin(), bytes.size()))};
}

std::vector<Column> columns(capnp::List<wire::Column>::Reader list) {
  std::vector<Column> all;
  for (const wire::Column::Reader c : list) {
    all.push_back(column(c));
  }
  return all;
}

// Runs `read` on the message's root. Cap'n Proto checks pointers as they are followed and throws;
// it counts what is read, repeated reads too, against a limit in words.
template <typename Root, typename Read>
auto read_message(PayloadView payload, Read&& read) -> decltype(read(std::declval<typename Root::Reader>())) {
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * payload.size() + 64;
    options.nestingLimit = 8;
    capnp::FlatArrayMessageReader message(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(payload.data()), payload.size()), options);
    return read(message.getRoot<Root>());
  } catch (const kj::Exception& e) {
    return failure(ExitCode::bad_tape, "the message is malformed: {}", e.getDescription().cStr());
  } catch (const std::exception& e) {
    return failure(ExitCode::bad_tape, "the message is malformed: {}", e.what());
  }
}

}  // namespace

void encode_header(const TapeHeader& header, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Header>();
  root.setForm(static_cast<std::uint8_t>(header.form));
  root.setClock(static_cast<std::uint8_t>(header.clock));
  root.setStacks(static_cast<std::uint8_t>(header.stacks));
  root.setFromStart(header.from_start);
  root.setKeepsAddresses(header.keeps_addresses);
  root.setPid(header.pid);
  root.setParentPid(header.parent_pid);
  root.setCpus(header.cpus);
  root.setPageSizeBytes(header.page_size_bytes);
  root.setTapeIdLow(header.tape_id[0]);
  root.setTapeIdHigh(header.tape_id[1]);
  root.setStartedUnixNs(header.started_unix_ns);
  root.setStartTick(header.start_tick);
  root.setTicksPerSecond(header.ticks_per_second);
  root.setHeaptapeVersion(bytes_of(header.heaptape_version));
  root.setProgram(bytes_of(header.program));
  auto arguments = root.initArguments(size_of(header.arguments.size()));
  for (unsigned i = 0; i < arguments.size(); ++i) {
    arguments.set(i, bytes_of(header.arguments[i]));
  }
  root.setHostKernel(bytes_of(header.host_kernel));
  root.setCpuModel(bytes_of(header.cpu_model));
  root.setAllocator(bytes_of(header.allocator));
  root.setSource(bytes_of(header.source));
  finish(message, out);
}

void encode_recorded(std::span<const EventRun> runs, std::span<const Column> columns, Payload& out) {
  capnp::MallocMessageBuilder message(first_segment_words(runs.size(), columns));
  auto root = message.initRoot<wire::RecordedEvents>();
  auto list = root.initRuns(size_of(runs.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setThread(static_cast<std::uint32_t>(runs[i].thread));
    list[i].setCount(runs[i].count);
    list[i].setFirst(runs[i].first);
    list[i].setFirstStamp(runs[i].first_stamp);
    list[i].setLastStamp(runs[i].last_stamp);
  }
  set_all(root.initColumns(size_of(columns.size())), columns);
  finish(message, out);
}

void encode_packed(const PackedBlock& block, std::span<const Column> columns, Payload& out) {
  capnp::MallocMessageBuilder message(first_segment_words(0, columns));
  auto root = message.initRoot<wire::PackedEvents>();
  root.setCount(block.count);
  root.setFirst(block.first);
  root.setFirstObject(block.first_object);
  root.setFirstTimeUs(block.first_time_us);
  root.setLastTimeUs(block.last_time_us);
  set_all(root.initColumns(size_of(columns.size())), columns);
  finish(message, out);
}

void encode_threads(std::span<const ThreadInfo> threads, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Threads>().initThreads(size_of(threads.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setThread(static_cast<std::uint32_t>(threads[i].thread));
    list[i].setTid(threads[i].tid);
    list[i].setStartTick(threads[i].start_tick);
    list[i].setEndTick(threads[i].end_tick);
    list[i].setName(bytes_of(threads[i].name));
  }
  finish(message, out);
}

void encode_modules(std::span<const ModuleInfo> modules, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Modules>().initModules(size_of(modules.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setLoadAddress(modules[i].load_address);
    list[i].setSizeBytes(modules[i].size_bytes);
    list[i].setLoadBias(modules[i].load_bias);
    list[i].setPath(bytes_of(modules[i].path));
    list[i].setBuildId(bytes_of(modules[i].build_id));
  }
  finish(message, out);
}

void encode_markers(std::span<const Marker> markers, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Markers>().initMarkers(size_of(markers.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setTimeNs(markers[i].time_ns);
    list[i].setName(bytes_of(markers[i].name));
  }
  finish(message, out);
}

void encode_resident(std::span<const ResidentSample> samples, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto list = message.initRoot<wire::Resident>().initSamples(size_of(samples.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setTimeNs(samples[i].time_ns);
    list[i].setResidentBytes(samples[i].resident_bytes);
    list[i].setAnonymousBytes(samples[i].anonymous_bytes);
  }
  finish(message, out);
}

void encode_gap(const Gap& gap, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Gap>();
  root.setThread(static_cast<std::uint32_t>(gap.thread));
  root.setLostEvents(gap.lost_events);
  root.setStamp(gap.stamp);
  finish(message, out);
}

void encode_watermark(const Watermark& mark, Payload& out) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::Watermark>();
  root.setTick(mark.tick);
  root.setTimeNs(mark.time_ns);
  finish(message, out);
}

void encode_footer(const FooterBlock& footer, Payload& out) {
  capnp::MallocMessageBuilder message(first_segment_words(0, {&footer.index, 1}));
  auto root = message.initRoot<wire::Footer>();
  root.setReason(static_cast<std::uint8_t>(footer.footer.reason));
  root.setValue(footer.footer.value);
  root.setDurationNs(footer.footer.duration_ns);
  root.setEvents(footer.footer.events);
  const RecorderStats& stats = footer.footer.recorder;
  root.setStalls(stats.stalls);
  root.setStalledNs(stats.stalled_ns);
  root.setDroppedEvents(stats.dropped_events);
  root.setOwnAllocations(stats.own_allocations);
  root.setNestedCalls(stats.nested_calls);
  root.setSignalLosses(stats.signal_losses);
  root.setLostThreads(stats.lost_threads);
  root.setBlocks(footer.blocks);
  set(root.initIndex(), footer.index);
  root.setHasMerge(footer.merged.has_value());
  if (footer.merged) {
    const MergeReport& from = *footer.merged;
    auto merge = root.initMerge();
    merge.setEvents(from.events);
    merge.setContradictions(from.contradictions);
    merge.setRepairs(from.repairs);
    merge.setUnknownReleases(from.unknown_releases);
    merge.setOpenReallocs(from.open_reallocs);
    merge.setGaps(from.gaps);
    merge.setLostEvents(from.lost_events);
    merge.setImpliedByDamage(from.implied_by_damage);
    merge.setLateEvents(from.late_events);
  }
  auto damage = root.initSourceDamage();
  damage.setTruncated(footer.source_damage.truncated);
  damage.setBadBlocks(footer.source_damage.bad_blocks);
  damage.setSkippedBytes(footer.source_damage.skipped_bytes);
  damage.setMissingBlocks(footer.source_damage.missing_blocks);
  damage.setMissingEvents(footer.source_damage.missing_events);
  finish(message, out);
}

void encode_end(std::uint64_t footer_offset, Payload& out) {
  capnp::MallocMessageBuilder message;
  message.initRoot<wire::End>().setFooterOffset(footer_offset);
  finish(message, out);
}

Result<TapeHeader> decode_header(PayloadView payload) {
  return read_message<wire::Header>(payload, [](wire::Header::Reader root) -> Result<TapeHeader> {
    TapeHeader header;
    if (root.getForm() > static_cast<std::uint8_t>(TapeForm::packed)) {
      return failure(ExitCode::bad_tape, "form {} is unknown: written by a newer heaptape; update this one",
                     root.getForm());
    }
    header.form = TapeForm{root.getForm()};
    header.clock = root.getClock() > static_cast<std::uint8_t>(ClockSource::none)
                       ? ClockSource::none
                       : ClockSource{root.getClock()};
    header.stacks = StackMode{root.getStacks()};
    header.from_start = root.getFromStart();
    header.keeps_addresses = root.getKeepsAddresses();
    header.pid = root.getPid();
    header.parent_pid = root.getParentPid();
    header.cpus = root.getCpus();
    header.page_size_bytes = root.getPageSizeBytes();
    header.tape_id = {root.getTapeIdLow(), root.getTapeIdHigh()};
    header.started_unix_ns = root.getStartedUnixNs();
    header.start_tick = root.getStartTick();
    if (std::isfinite(root.getTicksPerSecond()) && root.getTicksPerSecond() > 0) {
      header.ticks_per_second = root.getTicksPerSecond();
    }
    header.heaptape_version = text(root.getHeaptapeVersion());
    header.program = text(root.getProgram());
    for (const capnp::Data::Reader argument : root.getArguments()) {
      header.arguments.push_back(text(argument));
    }
    header.host_kernel = text(root.getHostKernel());
    header.cpu_model = text(root.getCpuModel());
    header.allocator = text(root.getAllocator());
    header.source = text(root.getSource());
    return header;
  });
}

Result<RecordedBlock> decode_recorded(PayloadView payload) {
  return read_message<wire::RecordedEvents>(
      payload, [](wire::RecordedEvents::Reader root) -> Result<RecordedBlock> {
        RecordedBlock block;
        for (const wire::Run::Reader run : root.getRuns()) {
          if (run.getCount() == 0 || run.getCount() > max_events_per_block - block.count) {
            return failure(ExitCode::bad_tape, "a run claims {} events", run.getCount());
          }
          block.count += run.getCount();
          block.runs.push_back({ThreadIndex{run.getThread()}, run.getCount(), run.getFirst(),
                                run.getFirstStamp(), run.getLastStamp()});
        }
        block.columns = columns(root.getColumns());
        return block;
      });
}

Result<PackedBlock> decode_packed(PayloadView payload) {
  return read_message<wire::PackedEvents>(
      payload, [](wire::PackedEvents::Reader root) -> Result<PackedBlock> {
        PackedBlock block;
        if (root.getCount() > max_events_per_block) {
          return failure(ExitCode::bad_tape, "a block claims {} events", root.getCount());
        }
        block.count = root.getCount();
        block.first = root.getFirst();
        block.first_object = root.getFirstObject();
        block.first_time_us = root.getFirstTimeUs();
        block.last_time_us = root.getLastTimeUs();
        block.columns = columns(root.getColumns());
        return block;
      });
}

Result<std::vector<ThreadInfo>> decode_threads(PayloadView payload) {
  return read_message<wire::Threads>(
      payload, [](wire::Threads::Reader root) -> Result<std::vector<ThreadInfo>> {
        std::vector<ThreadInfo> all;
        for (const auto t : root.getThreads()) {
          all.push_back(
              {ThreadIndex{t.getThread()}, t.getTid(), t.getStartTick(), t.getEndTick(), text(t.getName())});
        }
        return all;
      });
}

Result<std::vector<ModuleInfo>> decode_modules(PayloadView payload) {
  return read_message<wire::Modules>(
      payload, [](wire::Modules::Reader root) -> Result<std::vector<ModuleInfo>> {
        std::vector<ModuleInfo> all;
        for (const auto m : root.getModules()) {
          all.push_back({text(m.getPath()), text(m.getBuildId()), m.getLoadAddress(), m.getSizeBytes(),
                         m.getLoadBias()});
        }
        return all;
      });
}

Result<std::vector<Marker>> decode_markers(PayloadView payload) {
  return read_message<wire::Markers>(payload, [](wire::Markers::Reader root) -> Result<std::vector<Marker>> {
    std::vector<Marker> all;
    for (const auto m : root.getMarkers()) {
      all.push_back({m.getTimeNs(), text(m.getName())});
    }
    return all;
  });
}

Result<std::vector<ResidentSample>> decode_resident(PayloadView payload) {
  return read_message<wire::Resident>(
      payload, [](wire::Resident::Reader root) -> Result<std::vector<ResidentSample>> {
        std::vector<ResidentSample> all;
        for (const auto s : root.getSamples()) {
          all.push_back({s.getTimeNs(), s.getResidentBytes(), s.getAnonymousBytes()});
        }
        return all;
      });
}

Result<Gap> decode_gap(PayloadView payload) {
  return read_message<wire::Gap>(payload, [](wire::Gap::Reader root) -> Result<Gap> {
    return Gap{ThreadIndex{root.getThread()}, root.getLostEvents(), root.getStamp()};
  });
}

Result<Watermark> decode_watermark(PayloadView payload) {
  return read_message<wire::Watermark>(payload, [](wire::Watermark::Reader root) -> Result<Watermark> {
    return Watermark{root.getTick(), root.getTimeNs()};
  });
}

Result<FooterBlock> decode_footer(PayloadView payload) {
  return read_message<wire::Footer>(payload, [](wire::Footer::Reader root) -> Result<FooterBlock> {
    FooterBlock block;
    if (root.getReason() <= static_cast<std::uint8_t>(EndReason::stopped)) {
      block.footer.reason = EndReason{root.getReason()};
    }
    block.footer.value = root.getValue();
    block.footer.duration_ns = root.getDurationNs();
    block.footer.events = root.getEvents();
    block.footer.recorder = {root.getStalls(),         root.getStalledNs(),   root.getDroppedEvents(),
                             root.getOwnAllocations(), root.getNestedCalls(), root.getSignalLosses(),
                             root.getLostThreads()};
    block.blocks = root.getBlocks();
    block.index = column(root.getIndex());
    const auto damage = root.getSourceDamage();
    block.source_damage = {damage.getTruncated(), damage.getBadBlocks(), damage.getSkippedBytes(),
                           damage.getMissingBlocks(), damage.getMissingEvents()};
    if (root.getHasMerge()) {
      const auto m = root.getMerge();
      block.merged = MergeReport{m.getEvents(),          m.getContradictions(),  m.getRepairs(),
                                 m.getUnknownReleases(), m.getOpenReallocs(),    m.getGaps(),
                                 m.getLostEvents(),      m.getImpliedByDamage(), m.getLateEvents()};
    }
    return block;
  });
}

Result<std::uint64_t> decode_end(PayloadView payload) {
  return read_message<wire::End>(
      payload, [](wire::End::Reader root) -> Result<std::uint64_t> { return root.getFooterOffset(); });
}

}  // namespace heaptape::format
