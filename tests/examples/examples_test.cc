#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/byte_pairs.h"
#include "tests/support/files.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int status = -1;  // of the program; -1: it did not end by itself
  std::string text;
};

Outcome run(const std::string& words) {
  FILE* pipe = popen((WEFT_EXAMPLES "/" + words + " 2>&1").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  // The shell reports a signal as 128 and more.
  outcome.status = WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1;
  return outcome;
}

const std::string kSmallGpt = "gpt --layers 1 --width 8 --heads 2 --context 8 --batch 2 --sample 0 ";

struct Refused {
  const char* name;
  std::string words;
  std::string says;  // flag, value and range or remedy
};

class RefusedTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, NamesFlagAndValue) {
  const Outcome outcome = run(GetParam().words);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, RefusedTest,
    ::testing::Values(
        Refused{"NegativeSteps", "sharded_net --steps -1", "--steps -1: give a number from 0 to"},
        Refused{"GptNegativeSteps", "gpt --steps -1", "--steps -1: give a number from 0 to"},
        Refused{"ResnetNegativeSteps", "resnet --steps -1", "--steps -1: give a number from 0 to"},
        Refused{"StepsOfNothing", "two_matmuls --steps 3", "unknown flag --steps"},
        Refused{"HugeSteps", "gpt --steps 99999999999999999999", "--steps 99999999999999999999"},
        Refused{"NoSteps", "gpt --steps=", "--steps takes an integer, not ''"},
        Refused{"Devices", "two_matmuls --devices 0", "--devices 0: give a number from 1 to 16384"},
        Refused{"Threads", "sharded_net --threads -1", "--threads -1: give a number from 0"},
        Refused{"Limit", "sharded_net --memory-limit -5", "--memory-limit -5: give a number from 0"},
        Refused{"Zero", "sharded_net --zero 4", "--zero 4: give a number from 0 to 3"},
        Refused{"Micro", "sharded_net --micro 0", "--micro 0: give a number from 1"},
        Refused{"Virtual", "gpt --virtual -1", "--virtual -1: give a number from 0"},
        Refused{"Optimizer", "gpt --optimizer adma", "optimizer 'adma' is unknown; did you mean 'adam'? There are sgd"},
        Refused{"Momentum", "gpt --momentum 0.9", "optimizer adamw has no setting 'momentum'"},
        Refused{"Rate", "gpt --lr nan", "--lr nan: give a number from 0"},
        Refused{"InfiniteRate", "gpt --lr inf", "--lr inf: give a number from 0"},
        Refused{"HugeRate", "gpt --lr 1e300", "--lr 1e300: give a number from 0"},
        Refused{"NegativeRate", "resnet --lr -1", "--lr -1: give a number from 0"},
        Refused{"Decay", "gpt --weight-decay nan", "--weight-decay nan"}, Refused{"Clip", "gpt --clip -1", "--clip -1"},
        Refused{"Dropout", "gpt --dropout 1", "--dropout 1: give a number from 0 to"},
        Refused{"Layers", "gpt --layers 0", "--layers 0: give a number from 1"},
        Refused{"Width", "gpt --width -8", "--width -8: give a number from 1"},
        Refused{"NoHeads", "gpt --heads 0", "--heads 0: give a number from 1"},
        Refused{"Heads", "gpt --width 96 --heads 5", "--heads 5 does not divide --width 96"},
        Refused{"Context", "gpt --context 0", "--context 0: give a number from 1"},
        Refused{"Batch", "gpt --batch 0", "--batch 0: give a number from 1"},
        Refused{"Sample", "gpt --sample -4", "--sample -4: give a number from 0"},
        Refused{"NoStages", "gpt --stages 0", "--stages 0: give a number from 1"},
        Refused{"Stages", "gpt --stages 4 --layers 1", "--stages 4 with --layers 1: a stage has at least one layer"},
        Refused{"Sequence", "gpt --sequence-parallel", "--sequence-parallel has no effect alone"},
        Refused{"SwitchValue", "gpt --tied=false", "--tied takes no value, not 'false'"},
        Refused{"NoText", "gpt --text nofile", "nofile"},
        Refused{"NoBytePairs", "gpt --bpe nofolder", "cannot read 'nofolder/encoder.json'"},
        Refused{"BytePairsAndBytes", "gpt --bpe nofolder --bytes", "--bytes beside --bpe nofolder"},
        Refused{"BytePairsOfNoText", "gpt --vocabulary 9 --plan-only p --bpe d", "without --text and --bpe"},
        Refused{"NoInit", kSmallGpt + "--steps 1 --init nofile", "nofile"},
        Refused{"NoTable", "gpt --schedule-file nofile", "--schedule-file 'nofile': there is no such file"},
        Refused{"NoData", "resnet --data nofolder", "nofolder"},
        Refused{"Epochs", "resnet --epochs nan", "--epochs nan: give a number from 0"},
        Refused{"ResnetBatch", "resnet --batch 0", "--batch 0: give a number from 1"},
        Refused{"ResnetStages", "resnet --stages 4", "--stages 4: give a number from 1 to 3"},
        Refused{"MnistData", "fashion_mnist --data nofolder", "nofolder"},
        Refused{"MnistHidden", "fashion_mnist --hidden 0", "--hidden 0: give a number from 1"},
        Refused{"LlamaHeads", "llama --width 30 --heads 4", "--heads 4 does not divide --width 30"},
        Refused{"LlamaStages", "llama --layers 2 --stages 3", "--stages 3 of a model of 2 layers"},
        Refused{"LlamaSequence", "llama --sequence-parallel", "--sequence-parallel has no effect alone"},
        Refused{"LlamaSizes", "llama --config c.json --width 8", "--width beside --config c.json"},
        Refused{"BertConfig", "bert --config nofile", "nofile"},
        Refused{"BertSave", "bert --save-weights /no/folder/x", "/no/folder"},
        Refused{"T5Stages", "t5 --layers 2 --stages 5", "--stages 5 of a model of 4 layers"},
        Refused{"T5Context", "t5 --context 1", "--context 1: one token is dropped and one left"},
        Refused{"UnetStages", "unet --stages 4", "--stages 4: give a number from 1 to 3"},
        Refused{"TwoSizes", "two_matmuls --devices 8 --mesh dp=4", "devices = 8 beside mesh 'dp=4'"},
        Refused{"Schedule", "sharded_net --schedule zb_h3", "schedule = 'zb_h3' is unknown"},
        Refused{"Recompute", "sharded_net --recompute matmull", "'matmull'; the nearest is 'matmul'"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(StepsTest, NoneIsNoCrash) {
  const Outcome net = run("sharded_net --steps 0");
  EXPECT_EQ(net.status, 0);
  EXPECT_THAT(net.text, HasSubstr("loss: none, there was no step"));
  const Outcome gpt = run(kSmallGpt + "--steps 0");
  EXPECT_EQ(gpt.status, 0);
  EXPECT_THAT(gpt.text, AllOf(HasSubstr("training loss: none"), HasSubstr("validation loss after 0 steps: ")));
}

// The tables of strategies split the batch over dp where the mesh is searched, too.
TEST(TensorParallelTest, TheBatchIsSplitWhereTheMeshIsFound) {
  const std::string words = "gpt --layers 1 --width 64 --heads 4 --context 32 --batch 16 --sample 0 --steps 1 ";
  const Outcome found = run(words + "--mode auto --devices 4 --without pipeline --tensor-parallel");
  EXPECT_EQ(found.status, 0) << found.text;
  EXPECT_THAT(found.text, HasSubstr("mesh dp=4,tp=1")) << "its layers are too narrow for more";
}

TEST(BytePairTest, TrainsAndSamples) {
  const testing::TemporaryDirectory folder;
  const testing::BytePairs pairs("t h\nth e\n\u0120 the\n");
  std::ofstream(folder / "encoder.json") << pairs.encoder;
  std::ofstream(folder / "vocab.bpe") << pairs.merges;
  const Outcome outcome = run(kSmallGpt + "--steps 2 --sample 5 --bpe " + folder.path());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("vocabulary 259"), HasSubstr("--- sample ---\n")));
}

TEST(NoteTest, IsPrinted) {
  EXPECT_THAT(run("sharded_net --steps 1 --schedule 1f1b").text,
              HasSubstr("note: schedule = '1f1b' has no effect: the program has no pipeline stages"));
  EXPECT_THAT(run("sharded_net --steps 1").text, Not(HasSubstr("note: ")));
}

const std::string kSmall = " --layers 2 --width 8 --heads 2 --context 16 --batch 4 ";

// The number behind ": " of the line that begins so; nan where there is none.
double numberOf(const std::string& line, const std::string& text) {
  const size_t at = text.find(line);
  return at == std::string::npos ? std::nan("") : std::stod(text.substr(text.find(": ", at) + 2));
}

// On Fashion-MNIST where it is, else on drawn images: as many right answers on one rank as split, and padded.
TEST(MnistExampleTest, SameAccuracyOnAllMeshes) {
  const std::string words = "fashion_mnist --steps 200 --lr 1e-3 ";
  const Outcome one = run(words);
  EXPECT_EQ(one.status, 0) << one.text;
  const double right = numberOf("test accuracy", one.text);
  EXPECT_GT(right, 0.5);
  for (const std::string mesh : {"--mesh dp=2,tp=2 --tensor-parallel --zero 2", "--mesh dp=3"}) {
    const Outcome split = run(words + mesh);
    EXPECT_EQ(split.status, 0) << split.text;
    EXPECT_NEAR(numberOf("test accuracy", split.text), right, 0.003) << mesh;
  }
}

class FamilyExampleTest : public ::testing::TestWithParam<std::string> {};

// Trains on a mesh with the family's table, writes the weights in the names of others and begins from them again, on
// one rank.
TEST_P(FamilyExampleTest, WeightsComeBackOnAnotherMesh) {
  const std::string file = ::testing::TempDir() + "example_" + GetParam() + ".safetensors";
  const Outcome trained =
      run(GetParam() + kSmall + "--steps 3 --mesh dp=2,tp=2 --tensor-parallel --save-weights " + file);
  EXPECT_EQ(trained.status, 0) << trained.text;
  const Outcome again = run(GetParam() + kSmall + "--steps 0 --weights " + file);
  EXPECT_EQ(again.status, 0) << again.text;
  EXPECT_THAT(trained.text, HasSubstr("validation loss after 3 steps"));
  // Four digits are printed; a sum over ranks may round the last one otherwise.
  EXPECT_NEAR(numberOf("validation loss", again.text), numberOf("validation loss", trained.text), 1.5e-4);
  std::remove(file.c_str());
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyExampleTest, ::testing::Values("llama", "bert", "t5"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft
