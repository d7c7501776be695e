#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "format/pack_command.h"
#include "tests/format/simulated_program.h"
#include "tests/format/tape_support.h"

namespace heaptape::format {
namespace {

using testing::HasSubstr;

class PackCommand : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = TapeWriter::create(tape_, simulated_header());
    ASSERT_TRUE(write_steps(*writer, SimulatedProgram(1, 2).run(500), 100));
    ASSERT_TRUE(writer->finish({}));
  }

  // The words after `heaptape`; what was printed is in `printed_`.
  Result<ExitCode> run(std::vector<std::string> words) {
    CLI::App app;
    CommandContext context;
    add_pack_command(app, context);
    std::reverse(words.begin(), words.end());
    app.parse(words);
    testing::internal::CaptureStdout();
    auto result = context.run();
    printed_ = testing::internal::GetCapturedStdout();
    return result;
  }

  TemporaryFolder folder_;
  std::filesystem::path tape_ = folder_ / "app.tape";
  std::string printed_;
};

TEST_F(PackCommand, WritesBesideTheTapeUnlessToldWhere) {
  ASSERT_EQ(run({"pack", tape_}).value(), ExitCode::fine);
  const auto beside = TapeReader::open(folder_ / "app.packed.tape");
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->info().header.form, TapeForm::packed);
  EXPECT_FALSE(beside->info().header.keeps_addresses);
  EXPECT_THAT(printed_, HasSubstr("app.packed.tape: "));

  ASSERT_EQ(run({"pack", tape_, "-o", folder_ / "other", "--keep-addresses"}).value(), ExitCode::fine);
  EXPECT_TRUE(TapeReader::open(folder_ / "other")->info().header.keeps_addresses);
}

TEST_F(PackCommand, SaysAsJsonWhatItDid) {
  ASSERT_EQ(run({"pack", tape_, "--json"}).value(), ExitCode::fine);
  const auto json = nlohmann::json::parse(printed_);
  const auto reader = TapeReader::open(folder_ / "app.packed.tape");
  EXPECT_EQ(json["schema"], "heaptape.pack/1");
  EXPECT_EQ(json["output"], (folder_ / "app.packed.tape").string());
  EXPECT_EQ(json["events"], reader->info().events);
  EXPECT_EQ(json["packed_bytes"], reader->info().file_bytes);
  EXPECT_EQ(json["keeps_addresses"], false);
}

TEST_F(PackCommand, RefusesToReplaceTheTapeItReads) {
  const Bytes before = read_file(tape_);
  const auto result = run({"pack", tape_, "-o", tape_});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ExitCode::usage);
  EXPECT_EQ(read_file(tape_), before);
}

TEST_F(PackCommand, RefusesToKeepAddressesThatAreNotThere) {
  ASSERT_TRUE(run({"pack", tape_}));
  const auto result = run({"pack", folder_ / "app.packed.tape", "--keep-addresses"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ExitCode::usage);
}

TEST_F(PackCommand, OfNoTapeIsABadTapeAndLeavesNothing) {
  write_file(folder_ / "text", "hello");
  const auto result = run({"pack", folder_ / "text"});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ExitCode::bad_tape);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "text.packed.tape"));
}

}  // namespace
}  // namespace heaptape::format
