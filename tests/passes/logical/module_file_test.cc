// A module written to a file and read again is the same, locations and record included; the text is short.

#include "passes/logical/module_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_replace.h"
#include "ir/program/program.h"
#include "mlir/Parser/Parser.h"
#include "passes/logical/read_module.h"
#include "passes/pipeline.h"
#include "planner/decisions.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/read_text.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ModuleFileTest : public ::testing::Test {
 protected:
  ModuleFileTest() {
    mlir::DialectRegistry dialects;
    registerWeftDialects(dialects);
    context_.appendDialectRegistry(dialects);
    context_.loadAllAvailableDialects();
    std::filesystem::create_directories(folder_);
  }
  ~ModuleFileTest() override { std::filesystem::remove_all(folder_); }

  // A module of one operator at `location`, its argument at `argument`.
  std::string moduleAt(const std::string& location, const std::string& argument, const std::string& more = "") const {
    return "module attributes {dist.mesh = #dist.mesh<\"2\">" + more +
           "} {\n  func.func @step(%x: tensor<4xf32> {nn.kind = \"input\", nn.name = \"x\"} loc(" + argument +
           ")) -> (tensor<4xf32> {nn.kind = \"output\", nn.name = \"y\"}) {\n    %0 = nn.exp %x {dist.stage = 0 : i64} "
           ": (tensor<4xf32>) -> tensor<4xf32> loc(" +
           location + ")\n    return %0 : tensor<4xf32> loc(unknown)\n  } loc(unknown)\n} loc(unknown)\n";
  }

  static std::string printed(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true, false));
    return text;
  }

  // The text of the file; what is read from it must be `text` again, but for stages of number 0.
  std::string roundTrip(const std::string& text) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module) << text;
    const std::string before = printed(*module);
    EXPECT_TRUE(writeModuleFile(*module, path_).ok());
    EXPECT_EQ(printed(*module), before) << "writing changes the module";
    const std::string file = readText(path_).value();
    const auto read = readModule(file, path_, context_);
    EXPECT_TRUE(read.ok()) << read.status();
    module->walk([](mlir::Operation* op) {
      auto stage = op->getAttrOfType<mlir::IntegerAttr>(kStageAttr);
      if (stage && stage.getInt() == 0) {
        op->removeAttr(kStageAttr);
      }
    });
    EXPECT_EQ(printed(**read), printed(*module));
    return file;
  }

  std::string refused(const std::string& text) {
    const auto read = readModule(text, path_, context_);
    EXPECT_FALSE(read.ok());
    return std::string(read.status().message());
  }

  mlir::MLIRContext context_;
  const std::string folder_ = ::testing::TempDir() + "/weft_module_file_test";
  const std::string path_ = folder_ + "/05-decide.mlir";
};

TEST_F(ModuleFileTest, LocationsAreFileNamesAtTheEndOfTheLine) {
  const std::string file = roundTrip(moduleAt(R"("/home/me/gpt/model.cc":32:1)", R"("/home/me/gpt/data.cc":7:1)"));
  EXPECT_THAT(file, HasSubstr("nn.exp %arg0 : 4xf32 loc(\"model.cc:32\")\n"));
  EXPECT_THAT(file, HasSubstr("loc(\"data.cc:7\")"));
  EXPECT_THAT(file,
              HasSubstr("dist.sources = {data.cc = \"/home/me/gpt/data.cc\", model.cc = \"/home/me/gpt/model.cc\"}"));
  EXPECT_THAT(file, Not(HasSubstr("#loc")));
}

TEST_F(ModuleFileTest, StageZeroIsNotWritten) {
  EXPECT_THAT(roundTrip(moduleAt("unknown", "unknown")), Not(HasSubstr("stage")));
  std::string staged = moduleAt("unknown", "unknown");
  staged.replace(staged.find("stage = 0"), 9, "stage = 1");
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(staged, &context_);
  ASSERT_TRUE(writeModuleFile(*module, path_).ok());
  EXPECT_THAT(readText(path_).value(), HasSubstr("loc(\"stage 1\")"));
}

// Who an operator is stands at the end of its line, before the user's.
TEST_F(ModuleFileTest, TheOperatorIsNamedAtTheEndOfTheLine) {
  const auto at = [&](const std::string& attributes, const std::string& location) {
    std::string text = moduleAt(location, "unknown");
    text.replace(text.find("dist.stage = 0 : i64"), 20, attributes);
    return roundTrip(text);
  };
  const std::string all =
      "dist.function = \"backward\", dist.stage = 1 : i64, nn.fwd = 28 : i64, nn.id = 99 : i64, nn.name = \"a: b\", "
      "nn.phase = \"update\"";
  EXPECT_THAT(at(all, R"("/a/model.cc":3:1)"),
              HasSubstr(R"(nn.exp %arg0 : 4xf32 loc("99 of 28 update @backward stage 1: a: b"("model.cc:3")))"));
  EXPECT_THAT(at("nn.name = \"\"", "unknown"), HasSubstr(R"(nn.exp %arg0 : 4xf32 loc(": "))"));
  EXPECT_THAT(at("nn.id = -1 : i64", "\"12 forward\""), HasSubstr(R"(nn.exp %arg0 : 4xf32 loc("-1"("12 forward")))"));
  // A location that reads as such an end is none.
  EXPECT_THAT(at("", "\"12 of 3\""), HasSubstr(R"(nn.exp %arg0 : 4xf32 loc(""("12 of 3")))"));
  EXPECT_THAT(at("", "\"of\""), HasSubstr(R"(nn.exp %arg0 : 4xf32 loc("of"))"));
  // What the text cannot say stays where it is.
  EXPECT_THAT(at("nn.id = 7 : i32, nn.phase = \"some other\"", "unknown"),
              HasSubstr(R"(nn.exp %arg0 {nn.id = 7 : i32, nn.phase = "some other"} : 4xf32 loc(unknown))"));
}

TEST_F(ModuleFileTest, LongHeadersAreBroken) {
  const std::string name(100, 'a');
  const std::string strange = "[\\22, {(" + name;  // a quote and brackets in a string
  const std::string file = roundTrip(
      moduleAt("unknown", "unknown", ", x.first = {a = \"" + strange + "\", b = [1, 2]}, x.second = \"" + name + "\""));
  EXPECT_THAT(
      file,
      HasSubstr("module attributes {\n    dist.mesh = #dist.mesh<\"2\">,\n    dist.sources = {},\n    x.first = {"));
  EXPECT_THAT(file,
              HasSubstr(",\n    x.second = \"" + name + "\"} {\n  func.func @step(%arg0: tensor<4xf32> {nn.kind"));
}

TEST_F(ModuleFileTest, FilesOfOneNameKeepTheirPaths) {
  const std::string file = roundTrip(moduleAt(R"("/a/model.cc":32:1)", R"("/b/model.cc":7:1)"));
  EXPECT_THAT(file, AllOf(HasSubstr("loc(\"/a/model.cc:32\")"), HasSubstr("loc(\"/b/model.cc:7\")")));
}

TEST_F(ModuleFileTest, OtherLocationsStayWhatTheyAre) {
  EXPECT_THAT(roundTrip(moduleAt(R"(fused["/a/model.cc":3:1, "/a/model.cc":4:1])", "unknown")),
              HasSubstr(R"(loc(fused["model.cc:3", "model.cc:4"]))"));
  EXPECT_THAT(roundTrip(moduleAt(R"("/a/model.mlir":3:7)", "unknown")), HasSubstr(R"(loc("/a/model.mlir":3:7))"));
  EXPECT_THAT(roundTrip(moduleAt(R"("a name")", R"("model.cc:x")")), HasSubstr(R"(loc("a name"))"));
  roundTrip(moduleAt(R"("C:\\model.cc":3:1)", R"("/folder/":3:1)"));
  roundTrip(moduleAt(R"("a \"quoted\" name.cc":3:1)", R"("":3:1)"));
}

TEST_F(ModuleFileTest, TheRecordLiesBeside) {
  const std::string record = printDecisions(Decisions());
  const std::string quoted = absl::StrReplaceAll(record, {{"\"", "\\22"}, {"\n", "\\0A"}});
  const std::string file =
      roundTrip(moduleAt("unknown", "unknown", ", dist.decisions = #dist.decisions<\"" + quoted + "\">"));
  EXPECT_THAT(file, AllOf(HasSubstr("dist.decisions_file = \"decisions.json\""), Not(HasSubstr("dist.decisions ="))));
  EXPECT_EQ(readText(folder_ + "/decisions.json").value(), record);
}

TEST_F(ModuleFileTest, ARecordThatIsNoneIsNamed) {
  roundTrip(moduleAt("unknown", "unknown", ""));
  ASSERT_TRUE(writeFile(folder_ + "/decisions.json", "{}").ok());
  EXPECT_THAT(refused(moduleAt("unknown", "unknown", ", dist.decisions_file = \"decisions.json\"")),
              AllOf(HasSubstr("decisions.json: "), HasSubstr("mesh")));
}

TEST_F(ModuleFileTest, SourcesThatAreNone) {
  EXPECT_THAT(refused(moduleAt("unknown", "unknown", ", dist.sources = 3 : i64")),
              AllOf(HasSubstr(path_), HasSubstr("dist.sources should be a dictionary of paths")));
  EXPECT_THAT(refused(moduleAt("unknown", "unknown", ", dist.sources = {a = 3 : i64}")),
              HasSubstr("dist.sources.a should be the path of a file"));
}

// What does not hold together is refused at the user's line, though its path is not known yet.
TEST_F(ModuleFileTest, ErrorsNameTheShortPlace) {
  std::string text = moduleAt("\"model.cc:32\"", "unknown", ", dist.sources = {model.cc = \"/a/model.cc\"}");
  text.replace(text.find("-> tensor<4xf32> loc"), 16, "-> tensor<5xf32>");
  text.replace(text.find("return %0 : tensor<4xf32>"), 25, "return %x : tensor<4xf32>");
  EXPECT_THAT(refused(text), HasSubstr("model.cc:32: error: "));
}

}  // namespace
}  // namespace weft
