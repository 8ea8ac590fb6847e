#include "planner/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/machine/times.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string errorOf(const std::string& text) {
  const absl::StatusOr<Machine> machine = Machine::parse(text);
  return machine.ok() ? "no error" : std::string(machine.status().message());
}

TEST(MachineTest, ReadsWhatItPrints) {
  Machine machine;
  machine.name = "two hosts";
  machine.linkLatency = 1.0 / 3;
  machine.memory = 80'000'000'001;
  machine.devicesPerNode = 8;
  machine.networkBandwidth = 2.5e10;
  absl::StatusOr<Machine> read = Machine::parse(machine.print());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->print(), machine.print());
  EXPECT_EQ(read->linkLatency, machine.linkLatency);
  EXPECT_EQ(read->memory, machine.memory);
}

TEST(MachineTest, KeepsDefaultsAndComments) {
  absl::StatusOr<Machine> read = Machine::parse("# a comment\n link_bandwidth = 5e9 # half\n\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->linkBandwidth, 5e9);
  EXPECT_EQ(read->flops, Machine().flops);
}

TEST(MachineTest, ErrorsNameLineAndKey) {
  EXPECT_THAT(errorOf("flops = 1\nspeed = 2\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("'speed'"), HasSubstr("link_bandwidth")));
  EXPECT_THAT(errorOf("flops = 0"), HasSubstr("'0' of 'flops' is not a number > 0"));
  EXPECT_THAT(errorOf("link_latency = -1"), HasSubstr("'-1' of 'link_latency' is not a number >= 0"));
  EXPECT_THAT(errorOf("nodes = 1.5"), HasSubstr("'1.5' of 'nodes' is not a whole number from 1"));
  EXPECT_THAT(errorOf("nodes = 1e10"), HasSubstr("'1e10' of 'nodes'"));
  EXPECT_THAT(errorOf("# text\nflops"), HasSubstr("line 2: expected key = value, found 'flops'"));
}

TEST(MachineTest, FiguresNeedEachOther) {
  EXPECT_THAT(errorOf("devices_per_node = 8"), HasSubstr("devices_per_node = 8 without network_bandwidth"));
  EXPECT_EQ(errorOf("devices_per_node = 8\nnodes = 1"), "no error");
  EXPECT_THAT(errorOf("nodes = 2"), HasSubstr("nodes without devices_per_node"));
  EXPECT_THAT(errorOf("network_bandwidth = 1e9"), HasSubstr("network_bandwidth without devices_per_node"));
}

TEST(MachineTest, SomeComeWithWeft) {
  EXPECT_THAT(Machine::names(), IsSupersetOf({"cpu", "a100-80g", "h100-80g", "h200-141g"}));
  for (const std::string& name : Machine::names()) {
    const absl::StatusOr<Machine> machine = Machine::parse(name);
    ASSERT_TRUE(machine.ok()) << name << ": " << machine.status();
    EXPECT_EQ(machine->name, name);
    EXPECT_FALSE(machine->source.empty()) << name;
  }
  EXPECT_THAT(errorOf("a100"), AllOf(HasSubstr("no machine 'a100'"), HasSubstr("a100-80g"), HasSubstr("memory")));
}

// The file `cpu` is what stands for no file at all.
TEST(MachineTest, CpuIsTheDefault) {
  Machine cpu = *Machine::parse("cpu");
  cpu.source.clear();
  EXPECT_EQ(cpu.print(), Machine().print());
}

TEST(MachineTest, RatesAreByElementType) {
  const Machine machine = *Machine::parse("flops = 2e12\nflops_bf16 = 1.6e13\nlaunch_latency = 0");
  EXPECT_EQ(machine.rate(DType::kF32), 2e12);
  EXPECT_EQ(machine.rate(DType::kF64), 2e12) << "as f32 where it is not given";
  EXPECT_EQ(kernelTime(machine, DType::kF32, 1.6e10, 0), 8 * kernelTime(machine, DType::kBF16, 1.6e10, 0));
  EXPECT_EQ(kernelTime(machine, DType::kBF16, 1, 2'000'000), copyTime(machine, 2'000'000)) << "bytes take longer";
}

TEST(MachineTest, RanksLieOnNodesInOrder) {
  Machine machine = *Machine::parse("a100-80g");
  EXPECT_EQ(machine.perNode(64), 8);
  EXPECT_EQ(machine.perNode(4), 4);
  EXPECT_EQ(machine.perNode(6), 6) << "a node has room for them";
  EXPECT_EQ(machine.perNode(12), 4) << "8 and 4, then 4 and 8";
  EXPECT_EQ(Machine().perNode(12), 12);
}

TEST(MachineTest, StagesThatDoNotFitOnANodeSendOverTheNetwork) {
  Machine machine = *Machine::parse("a100-80g");
  EXPECT_EQ(transferTime(machine, 8, 3'000'000), picosecondsOf(3e-6 + 1e-5));
  EXPECT_EQ(transferTime(machine, 16, 3'000'000), picosecondsOf(1e-5 + 3e6 / 2.5e10));
}

}  // namespace
}  // namespace weft
