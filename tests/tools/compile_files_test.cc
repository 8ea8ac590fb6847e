// `weft compile` on files and flags that are wrong: a message that begins with the command and names what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/read_text.h"
#include "tests/tools/run_command.h"
#include "tools/commands/compile.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CompileCommand : public ::testing::Test {
 protected:
  CompileCommand() : directory_(::testing::TempDir() + "/weft_compile_files_test") {
    std::filesystem::create_directories(directory_);
  }
  ~CompileCommand() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string write(const std::string& text) const {
    std::ofstream(path("model.mlir")) << text;
    return path("model.mlir");
  }

  // The message about a module; nothing is written.
  std::string refused(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {write(text), "-o", path("model.plan")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(compileCommand, words);
    EXPECT_EQ(outcome.status, 1) << text.substr(0, 200);
    EXPECT_THAT(outcome.err, StartsWith("weft compile: "));
    EXPECT_FALSE(std::filesystem::exists(path("model.plan")));
    return outcome.err;
  }

  std::string directory_;
};

// A program of one operator; `attributes` are the module's, `argument` those of x.
std::string module(const std::string& attributes, const std::string& argument = "",
                   const std::string& type = "tensor<16x4xf32>") {
  return "module attributes {" + attributes + "} {\n  func.func @step(%x: " + type +
         " {nn.kind = \"input\", nn.name = \"x\"" + argument + "}) -> (" + type +
         " {nn.kind = \"output\", nn.name = \"y\"}) {\n    %0 = nn.exp %x : (" + type + ") -> " + type +
         "\n    return %0 : " + type + "\n  }\n}\n";
}

const char kMesh[] = "dist.mesh = #dist.mesh<\"2\">";

TEST_F(CompileCommand, CompilesWhatIsRight) {
  const Outcome outcome = run(compileCommand, {write(module(kMesh)), "-o", path("model.plan")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(path("model.plan")));
}

TEST_F(CompileCommand, MessagesBeginWithTheCommandAsTyped) {
  Outcome outcome = run(compileCommand, {"nothing.mlir"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "weft compile: flag '--output' is missing: the plan file (also -o)\nTry 'weft compile --help'.\n");
  outcome = run(compileCommand, {"/nonexistent.mlir", "-o", path("model.plan")});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "weft compile: cannot read '/nonexistent.mlir'\n");
}

TEST_F(CompileCommand, FilesThatAreNoPrograms) {
  EXPECT_THAT(refused(""), HasSubstr("needs a function @step"));
  EXPECT_THAT(refused("module {}"), HasSubstr("needs a function @step"));
  EXPECT_THAT(refused("garbage {"), HasSubstr("model.mlir:1: error: "));
  EXPECT_THAT(refused(std::string("\0\xff{", 3)), HasSubstr("error: "));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", dist.state = \"planned\"")),
              HasSubstr("dist.state is \"planned\"; it should be one of \"annotated\", \"local\", \"scheduled\""));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", dist.phase = \"nothing\"")),
              HasSubstr("no state or phase 'nothing' to start from"));
}

// A file that says it is past a phase, and is not.
TEST_F(CompileCommand, StatesThatAreClaimed) {
  for (const char* phase :
       {"decide", "assign-layouts", "insert-transfers", "insert-reshards", "send-updates", "mask-pads",
        "mark-recompute", "recompute", "cut-functions", "lower-reshards", "localize-shapes", "split-backward",
        "form-buckets", "write-schedule", "assign-storage", "plan-memory"}) {
    EXPECT_THAT(refused(module(std::string(kMesh) + ", dist.phase = \"" + phase + "\"")), HasSubstr("error: "))
        << phase;
  }
}

// No gate has looked at the module when the request is checked against it.
TEST_F(CompileCommand, AStepWithoutBody) {
  EXPECT_THAT(refused("module attributes {" + std::string(kMesh) +
                      "} {\n  func.func private @step(tensor<4xf32> {nn.kind = \"input\", nn.name = \"x\"})\n}\n"),
              HasSubstr("@step"));
}

TEST_F(CompileCommand, AttributesOfAnotherForm) {
  EXPECT_THAT(refused(module("dist.mesh = 3 : i64")), HasSubstr("dist.mesh = 3 : i64; it should be a mesh, such as"));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", nn.layouts = [\"w\", 3]")),
              HasSubstr("nn.layouts = \"w\"; it should be an entry of a list of pairs"));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", nn.options = {zero = \"three\"}")),
              HasSubstr("nn.options.zero = \"three\"; it should be an integer"));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", nn.options = 3 : i64"), {"--zero", "1"}),
              HasSubstr("nn.options = 3 : i64; it should be a dictionary"));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", nn.optimizer = {kind = \"sdg\"}")),
              HasSubstr("optimizer 'sdg' is unknown; did you mean 'sgd'? There are sgd, adam, adamw, adagrad"));
  EXPECT_THAT(refused(module(kMesh, ", nn.init = {distribution = 3 : i64}")),
              HasSubstr("nn.init.distribution is 3 : i64; it should be one of \"normal\""));
  EXPECT_THAT(refused(module(std::string(kMesh) + ", dist.stage_meshes = [1]")), HasSubstr("it should be a text"));
}

TEST_F(CompileCommand, NumbersBeyondAllPrograms) {
  EXPECT_THAT(refused(module("dist.mesh = #dist.mesh<\"4611686018427387904\">")), HasSubstr("more than 16384 ranks"));
  EXPECT_THAT(refused(module("dist.mesh = #dist.mesh<\"dp=2,micro=1099511627776\">")),
              HasSubstr("more than 16384 micro-batches"));
  EXPECT_THAT(refused(module(kMesh, "", "tensor<4611686018427387904x4xf32>")), HasSubstr("at most 2^48 bytes"));
  EXPECT_THAT(refused(module(kMesh, "", "tensor<0x4xf32>")), HasSubstr("at least one element"));
  EXPECT_THAT(refused(module(kMesh, ", nn.layout = \"[{},{}] pad{1:4611686018427387904}\"")),
              HasSubstr("dimension:size"));
  EXPECT_THAT(refused(module(kMesh), {"--micro", "99999999999999999999"}),
              HasSubstr("--micro '99999999999999999999' is not an integer of 64 bits"));
  EXPECT_THAT(refused(module(kMesh), {"--zero", "4"}), HasSubstr("zero = 4; the ZeRO level is 0, 1, 2 or 3"));
}

// MLIR's parser and printer recurse; theirs would be the stack that ends.
TEST_F(CompileCommand, DeepNesting) {
  const std::string brackets = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(refused(module(std::string(kMesh) + ", foo = " + brackets)), HasSubstr("deep inside of each other"));
  std::string aliases = "#a0 = [1]\n";
  for (int i = 1; i < 20000; ++i) {
    aliases += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(refused(aliases + module(std::string(kMesh) + ", foo = #a19999")),
              HasSubstr("deep inside of each other"));
  const std::string minus(100000, '-');
  EXPECT_THAT(refused(module(std::string(kMesh) + ", foo = affine_map<() -> (" + minus + "1)>")),
              HasSubstr("affine_map has no place"));
  // MLIR itself crashes when it prints what it reads of these.
  for (const std::string array : {"array<i1: 0, 1>", "array < i1 : 0>", "array<i1>"}) {
    EXPECT_THAT(refused(module(std::string(kMesh) + ", foo = " + array)), HasSubstr("array<i1> has no place")) << array;
  }
}

// Patterns with many stars are matched in bounded time, against a name on which each almost fits.
TEST_F(CompileCommand, ManyPatterns) {
  std::string stars;
  for (int i = 0; i < 30; ++i) {
    stars += "*a";
  }
  const std::string name(200, 'a');
  const std::string text = "module attributes {" + std::string(kMesh) + ", nn.layouts = [[\"" + stars +
                           "b\", \"[{}]\"]]} {\n  func.func @step(%w: tensor<4xf32> {nn.kind = \"parameter\", "
                           "nn.name = \"" +
                           name +
                           "\"}) -> (tensor<4xf32> {nn.kind = \"output\", nn.name = \"y\"}) {\n    %0 = nn.exp "
                           "%w : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>\n  }\n}\n";
  const Outcome outcome = run(compileCommand, {write(text), "-o", path("model.plan")});
  // Whether a pattern may match nothing is another question.
  EXPECT_THAT(outcome.err, Not(HasSubstr("LLVM ERROR")));
}

TEST_F(CompileCommand, FlagsThatComeTooLate) {
  ASSERT_EQ(run(compileCommand, {write(module(kMesh)), "-o", path("a.plan"), "--dump-dir", path("dump")}).status, 0);
  std::string decided;
  for (const auto& entry : std::filesystem::directory_iterator(path("dump"))) {
    decided = entry.path().string().find("decide") != std::string::npos ? entry.path().string() : decided;
  }
  EXPECT_EQ(run(compileCommand, {decided, "-o", path("b.plan")}).status, 0);
  for (const char* flag : {"--mesh", "--micro", "--zero", "--decisions"}) {
    const Outcome outcome = run(compileCommand, {decided, "-o", path("b.plan"), flag, "1"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(std::string(flag) + " comes too late: the module is past 'decide'"));
  }
}

// The files of a dump, and what comes of them without the record beside them.
class DumpFolder : public CompileCommand {
 protected:
  DumpFolder() {
    const Outcome outcome = run(compileCommand, {write(module(kMesh)), "-o", path("a.plan"), "--dump-dir", path("dump"),
                                                 "--save-decisions", path("saved.json")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const auto& entry : std::filesystem::directory_iterator(path("dump"))) {
      const std::string file = entry.path().string();
      decided_ = file.find("decide.mlir") != std::string::npos ? file : decided_;
    }
  }

  static std::string contents(const std::string& file) { return *readText(file); }
  std::string resumed(const std::string& file) const {
    const Outcome outcome = run(compileCommand, {file, "-o", path("b.plan")});
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  }

  std::string decided_;
};

TEST_F(DumpFolder, HoldsTheRecordBesideTheModules) {
  EXPECT_EQ(contents(path("dump/decisions.json")), contents(path("saved.json")));
  EXPECT_THAT(contents(decided_), HasSubstr("dist.decisions_file = \"decisions.json\""));
  EXPECT_THAT(contents(decided_), Not(HasSubstr("dist.decisions =")));
  EXPECT_THAT(contents(path("dump/00-input.mlir")), Not(HasSubstr("decisions")));
}

TEST_F(DumpFolder, ARecordThatIsNotThereIsNamed) {
  std::filesystem::create_directory(path("elsewhere"));
  std::filesystem::copy(decided_, path("elsewhere/decided.mlir"));
  EXPECT_THAT(resumed(path("elsewhere/decided.mlir")),
              AllOf(HasSubstr(path("elsewhere/decided.mlir") + ": cannot read '" + path("elsewhere/decisions.json")),
                    HasSubstr("copy decisions.json of the same dump there")));
  EXPECT_EQ(run(compileCommand, {path("dump/00-input.mlir"), "-o", path("b.plan")}).status, 0);
}

TEST_F(DumpFolder, ARecordOfAnotherProgramIsRefused) {
  std::ofstream(path("dump/decisions.json")) << "{}";
  EXPECT_THAT(resumed(decided_), Not(HasSubstr("cannot read")));
}

TEST_F(DumpFolder, NoFileOutsideOfTheFolderIsRead) {
  for (const std::string name : {"../saved.json", "/etc/passwd", "..", ""}) {
    std::string text = contents(decided_);
    text.replace(text.find("\"decisions.json\""), std::string("\"decisions.json\"").size(), "\"" + name + "\"");
    EXPECT_THAT(resumed(write(text)), HasSubstr("dist.decisions_file is '" + name + "'; it should be the name of a"));
  }
  std::string both = contents(decided_);
  both.insert(both.find("dist.decisions_file"), "dist.decisions = \"{}\", ");
  EXPECT_THAT(resumed(write(both)), HasSubstr("remove dist.decisions or dist.decisions_file"));
}

TEST_F(CompileCommand, PathsThatCannotBeWritten) {
  const std::string model = write(module(kMesh));
  const std::string inFile = model + "/sub";  // below a file there is no directory
  Outcome outcome = run(compileCommand, {model, "-o", path("model.plan"), "--dump-dir", inFile});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("weft compile: "), HasSubstr(inFile), Not(HasSubstr("LLVM ERROR"))));
  outcome = run(compileCommand, {model, "-o", path("model.plan"), "--save-decisions", inFile});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("weft compile: "), HasSubstr(inFile)));
  outcome = run(compileCommand, {model, "-o", inFile});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("weft compile: "), HasSubstr(inFile)));
  if (std::filesystem::exists("/dev/full")) {
    // The dump's name is made to lead to a device that is always full.
    std::filesystem::create_directories(path("full"));
    std::filesystem::create_symlink("/dev/full", path("full/00-input.mlir"));
    outcome = run(compileCommand, {model, "-o", path("model.plan"), "--dump-dir", path("full")});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("00-input.mlir': No space left on device"));
  }
}

}  // namespace
}  // namespace weft::tools
