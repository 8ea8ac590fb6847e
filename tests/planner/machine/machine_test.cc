#include "planner/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
  machine.productEfficiency = 0.1;
  machine.tile = {128, 256};
  machine.multiprocessors = 108;
  machine.hostBandwidth = 3e10;
  machine.hostMemory = 250'000'000'001;
  machine.queues = 2;
  machine.overlapSlowdown = 1.25;
  machine.cores = 12;
  machine.profiles = {{DType::kBF16, 3, 4, 5, 1.0 / 7}, {DType::kF32, 3, 4, 5, 2e-3}};
  machine.kernels = {{"gelu", DType::kF32, 0, 64, 0, 0, 0, 1.0 / 7}, {"contract", DType::kF64, 120, 94, 3, 4, 5, 2e-3}};
  absl::StatusOr<Machine> read = Machine::parse(machine.print());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->print(), machine.print());
  EXPECT_EQ(read->linkLatency, machine.linkLatency);
  EXPECT_EQ(read->memory, machine.memory);
  EXPECT_EQ(read->tile.columns, 256);
  EXPECT_EQ(read->hostBandwidth, 3e10);
  EXPECT_EQ(read->hostMemory, 250'000'000'001);
  EXPECT_EQ(read->queues, 2);
  EXPECT_EQ(read->overlapSlowdown, 1.25);
  ASSERT_EQ(read->profiles.size(), 2);
  EXPECT_EQ(read->profiles[0].seconds, 1.0 / 7);
  EXPECT_EQ(read->profiles[1].type, DType::kF32);
  EXPECT_EQ(read->cores, 12);
  ASSERT_EQ(read->kernels.size(), 2);
  EXPECT_EQ(read->kernels[0].seconds, 1.0 / 7);
  EXPECT_EQ(read->kernels[1].k, 5);
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
  EXPECT_THAT(errorOf("product_efficiency = 1.1"),
              HasSubstr("'1.1' of 'product_efficiency' is not a part, more than 0"));
  EXPECT_THAT(errorOf("memory_efficiency = 0"), HasSubstr("'0' of 'memory_efficiency'"));
  EXPECT_THAT(errorOf("host_bandwidth = nan"), HasSubstr("'nan' of 'host_bandwidth'"));
  EXPECT_THAT(errorOf("host_memory = 0.5"), HasSubstr("'0.5' of 'host_memory'"));
  EXPECT_THAT(errorOf("host_memory = 5"), HasSubstr("host_memory = 5 without host_bandwidth"));
  EXPECT_THAT(errorOf("queues = 0"), HasSubstr("'0' of 'queues' is not a whole number from 1 to 2"));
  EXPECT_THAT(errorOf("queues = 3"), HasSubstr("'3' of 'queues' is not a whole number from 1 to 2"));
  EXPECT_THAT(errorOf("queues = 2\noverlap_slowdown = 0.9"),
              AllOf(HasSubstr("line 2"), HasSubstr("'0.9' of 'overlap_slowdown' is not a number >= 1")));
  EXPECT_THAT(errorOf("tile = 128"), HasSubstr("'128' of 'tile' is not two sizes"));
  EXPECT_THAT(errorOf("tile = 128x0"), HasSubstr("as 128x256"));
  EXPECT_THAT(errorOf("# text\nflops"), HasSubstr("line 2: expected key = value, found 'flops'"));
}

TEST(MachineTest, FiguresNeedEachOther) {
  EXPECT_THAT(errorOf("devices_per_node = 8"), HasSubstr("devices_per_node = 8 without network_bandwidth"));
  EXPECT_EQ(errorOf("devices_per_node = 8\nnodes = 1"), "no error");
  EXPECT_THAT(errorOf("tile = 128x256"), HasSubstr("tile without multiprocessors"));
  EXPECT_THAT(errorOf("multiprocessors = 8"), HasSubstr("multiprocessors without tile"));
  EXPECT_THAT(errorOf("stream_k = 1"), HasSubstr("stream_k = 1 without tile and multiprocessors"));
  EXPECT_THAT(errorOf("nodes = 2"), HasSubstr("nodes without devices_per_node"));
  EXPECT_THAT(errorOf("network_bandwidth = 1e9"), HasSubstr("network_bandwidth without devices_per_node"));
  EXPECT_THAT(errorOf("overlap_slowdown = 1.2"),
              AllOf(HasSubstr("overlap_slowdown = 1.2 with 1 queue"), HasSubstr("give queues = 2 too")));
  EXPECT_EQ(errorOf("overlap_slowdown = 1.2\nqueues = 2"), "no error");
}

// A file is checked where it is named.
TEST(MachineTest, FilesAreNamedInErrors) {
  const std::string path = ::testing::TempDir() + "/weft_machine_test_file.txt";
  const auto errorOf = [&](const std::string& text) {
    std::ofstream(path) << text;
    return std::string(Machine::textOf(path).status().message());
  };
  EXPECT_EQ(errorOf("flops = 1e12\nmemory_bandwidth = 1e11\n"), "");
  EXPECT_EQ(errorOf("# memory_bandwidth is the default's\nlaunch_latency = 1e-6\n"), "");
  EXPECT_THAT(errorOf("flops = 1e12\n"),
              AllOf(HasSubstr(path), HasSubstr("memory_bandwidth is missing beside flops"), HasSubstr("give both")));
  EXPECT_THAT(errorOf("link_latency = 1e-6\n"), HasSubstr("link_bandwidth is missing beside link_latency"));
  EXPECT_THAT(errorOf("flops = 1e12\nmemory_bandwidth = -3\n"),
              AllOf(HasSubstr(path), HasSubstr("line 2: value '-3' of 'memory_bandwidth'")));
  EXPECT_THAT(errorOf("memroy = 3\n"), AllOf(HasSubstr(path), HasSubstr("unknown key 'memroy'")));
  EXPECT_THAT(std::string(Machine::textOf(path + "s").status().message()), HasSubstr("neither a file"));
  std::remove(path.c_str());
}

TEST(MachineTest, ErrorsOfProfilesSayTheForm) {
  const std::string good = "profile matmul bf16 4 5 6 = 1e-3\n";
  EXPECT_EQ(errorOf(good + "profile matmul f32 4 5 6 = 1e-3"), "no error");
  EXPECT_THAT(errorOf(good + good), AllOf(HasSubstr("line 2"), HasSubstr("there already, with 0.001 seconds")));
  EXPECT_THAT(errorOf("profile matmul bf16 4 5 = 1"), HasSubstr("expected profile matmul TYPE M N K = SECONDS"));
  EXPECT_THAT(errorOf("profile gelu bf16 4 5 6 = 1"), HasSubstr("neither a measured product nor calls of a kernel"));
  EXPECT_EQ(errorOf("profile gelu i32 0 5 = 1\nprofile gelu i32 0 6 = 1\nprofile conv2d f32 0 6 1 2 3 = 1"),
            "no error");
  EXPECT_THAT(errorOf("profile gelu f32 0 5 = 1\nprofile gelu f32 0 5 = 2"),
              HasSubstr("there already, with 1 seconds"));
  EXPECT_THAT(errorOf("profile gelu f33 0 5 = 1"), HasSubstr("'f33' is no element type"));
  EXPECT_THAT(errorOf("profile gelu f32 -1 5 = 1"), HasSubstr("'-1' is not a whole number from 0"));
  EXPECT_THAT(errorOf("profile conv2d f32 0 6 0 2 3 = 1"), HasSubstr("'0' is not a whole number from 1"));
  EXPECT_THAT(errorOf("profile matmul i32 4 5 6 = 1"), HasSubstr("'i32' is none of f32"));
  EXPECT_THAT(errorOf("profile matmul f32 4 -5 6 = 1"), HasSubstr("'-5' is not a whole number from 1"));
  EXPECT_THAT(errorOf("profile matmul f32 4 5 6 = 0"), HasSubstr("'0' is not a number > 0"));
}

TEST(MachineTest, SomeComeWithWeft) {
  EXPECT_THAT(Machine::names(), IsSupersetOf({"cpu", "a100-80g", "h100-80g", "h200-141g"}));
  for (const std::string& name : Machine::names()) {
    const absl::StatusOr<Machine> machine = Machine::parse(name);
    ASSERT_TRUE(machine.ok()) << name << ": " << machine.status();
    EXPECT_EQ(machine->name, name);
    EXPECT_FALSE(machine->source.empty()) << name;
    EXPECT_EQ(machine->queues, name == "cpu" ? 1 : 2) << name;
  }
  EXPECT_THAT(errorOf("a100"), AllOf(HasSubstr("no machine 'a100'"), HasSubstr("a100-80g"), HasSubstr("memory")));
}

// The file `cpu` is what stands for no file at all.
TEST(MachineTest, CpuIsTheDefault) {
  Machine cpu = *Machine::parse("cpu");
  cpu.source.clear();
  EXPECT_EQ(cpu.print(), Machine().print());
}

Picoseconds productTime(const Machine& machine, DType type, const ProductShape& shape) {
  return kernelTime(machine,
                    {.type = type, .flops = shape.flopsPerSum() * static_cast<double>(shape.k), .product = shape});
}

TEST(MachineTest, RatesAreByElementType) {
  const Machine machine = *Machine::parse("flops = 2e12\nflops_bf16 = 1.6e13\nlaunch_latency = 0");
  EXPECT_EQ(machine.rate(DType::kF32), 2e12);
  EXPECT_EQ(machine.rate(DType::kF64), 2e12) << "as f32 where it is not given";
  EXPECT_EQ(kernelTime(machine, {.flops = 1.6e10}), 8 * kernelTime(machine, {.type = DType::kBF16, .flops = 1.6e10}));
  EXPECT_EQ(kernelTime(machine, {.type = DType::kBF16, .flops = 1, .bytes = 2'000'000}), copyTime(machine, 2'000'000))
      << "bytes take longer";
}

TEST(MachineTest, KernelsReachPartsOfTheRates) {
  const Machine machine = *Machine::parse(
      "flops = 1e12\nmemory_bandwidth = 1e12\nlaunch_latency = 0\nproduct_efficiency = 0.5\nfused_efficiency = 0.25\n"
      "memory_efficiency = 0.8");
  EXPECT_EQ(productTime(machine, DType::kF32, {1, 100, 100, 50}), picosecondsOf(1e6 / 0.5e12));
  EXPECT_EQ(kernelTime(machine, {.flops = 1e6}), picosecondsOf(1e6 / 0.25e12));
  EXPECT_EQ(copyTime(machine, 8'000'000), picosecondsOf(1e-5));
}

// 128 x 256 tiles on 4 multiprocessors: what does not fill them, or the last of the waves, takes as long as if it did.
TEST(MachineTest, ProductsAreMadeInWavesOfTiles) {
  const Machine machine =
      *Machine::parse("flops = 1e12\nlaunch_latency = 0\ntile = 128x256\nmultiprocessors = 4\nmemory_bandwidth = 1e15");
  EXPECT_EQ(usefulPart(machine, {1, 256, 512, 64}), 1);
  EXPECT_EQ(usefulPart(machine, {1, 256, 513, 64}), 256.0 * 513 / (8 * 128 * 256)) << "two more tiles, one more wave";
  EXPECT_EQ(usefulPart(machine, {4, 128, 256, 64}), 1) << "a tile for each of the batch";
  EXPECT_EQ(usefulPart(machine, {4, 256, 128, 64}), 1) << "the other way round";
  EXPECT_EQ(usefulPart(machine, {1, 1, 256, 64}), 1.0 / 512) << "thin: a column of one tile of four";
  EXPECT_EQ(productTime(machine, DType::kF32, {1, 300, 512, 64}), productTime(machine, DType::kF32, {1, 512, 512, 64}));
}

// The same tiles; what a wave leaves idle computes parts of it, for as long as it takes to write and read 4 tiles of
// f32.
TEST(MachineTest, IdleMultiprocessorsShareTiles) {
  const std::string text =
      "flops = 1e12\nlaunch_latency = 0\ntile = 128x256\nmultiprocessors = 4\nmemory_bandwidth = 1e12\n";
  const Machine waves = *Machine::parse(text);
  const Machine shared = *Machine::parse(text + "stream_k = 1\n");
  const auto timeOf = [](const Machine& machine, int64_t m, int64_t n, int64_t k) {
    return kernelTime(machine, {.flops = 2.0 * m * n * k, .product = ProductShape{1, m, n, k}});
  };
  const double sums = 2.0 * 4 * 128 * 256 * 4 / 1e12;
  EXPECT_EQ(timeOf(shared, 128, 256, 1 << 20), picosecondsOf(2.0 * 128 * 256 * (1 << 20) / 1e12 + sums)) << "one tile";
  EXPECT_EQ(timeOf(shared, 640, 256, 1 << 20), picosecondsOf(2.0 * 640 * 256 * (1 << 20) / 1e12 + sums)) << "five";
  EXPECT_EQ(timeOf(shared, 100, 256, 1 << 20), timeOf(shared, 128, 256, 1 << 20)) << "tiles that are not full";
  EXPECT_EQ(timeOf(shared, 256, 512, 64), timeOf(waves, 256, 512, 64)) << "nothing idles";
  EXPECT_EQ(timeOf(shared, 640, 256, 1), timeOf(waves, 640, 256, 1)) << "sums would take longer than what idles";
}

// Products of layers of GPT as one H200 took them, one after another (docs/gpu_runs.md): forward and both gradients,
// with few rows and many, and with fewer tiles than multiprocessors.
TEST(MachineTest, ProductsTakeWhatTheyTookOnAnH200) {
  const Machine machine = *Machine::parse("h200-141g");
  const std::tuple<int64_t, int64_t, int64_t, double> measured[] = {
      {1024, 768, 12288, 35.5e-6},     {1024, 1024, 8192, 30.0e-6},    {1024, 3072, 8192, 78.5e-6},
      {2048, 2304, 12288, 167.3e-6},   {2048, 12288, 6144, 449.4e-6},  {8192, 12288, 768, 264.1e-6},
      {1024, 8192, 1024, 28.7e-6},     {1024, 15360, 5120, 241.4e-6},  {16384, 1024, 8192, 399.2e-6},
      {8192, 3072, 8192, 589.5e-6},    {1024, 24576, 12288, 919.3e-6}, {16384, 6144, 8192, 2401.4e-6},
      {4096, 12288, 24576, 3493.7e-6}, {32768, 8192, 8192, 6374.1e-6}};
  double error = 0;
  for (const auto& [m, n, k, seconds] : measured) {
    const double predicted = static_cast<double>(productTime(machine, DType::kBF16, {1, m, n, k})) * 1e-12;
    EXPECT_NEAR(predicted / seconds, 1, 0.15) << m << " x " << n << " x " << k;
    error += std::abs(predicted / seconds - 1) / std::size(measured);
  }
  EXPECT_LT(error, 0.05);
}

TEST(MachineTest, WhatWasMeasuredOverridesFormulas) {
  const Machine machine = *Machine::parse(
      "flops = 1e12\nlaunch_latency = 1e-6\nprofile matmul f32 64 64 64 = 3e-6\n"
      "profile matmul f32 256 64 64 = 5e-6\nprofile matmul bf16 64 64 64 = 9e-6\n");
  EXPECT_EQ(productTime(machine, DType::kF32, {1, 64, 64, 64}), picosecondsOf(3e-6));
  EXPECT_EQ(productTime(machine, DType::kBF16, {1, 64, 64, 64}), picosecondsOf(9e-6));
  // In the middle between both, their rates count alike: 524288 in 2 us, 2097152 in 4 us.
  const double rate = (524288 / 2e-6 + 2097152 / 4e-6) / 2;
  EXPECT_EQ(productTime(machine, DType::kF32, {1, 128, 64, 64}), picosecondsOf(1e-6 + 2 * 524288 / rate));
  EXPECT_EQ(productTime(machine, DType::kF32, {2, 64, 64, 64}), productTime(machine, DType::kF32, {1, 128, 64, 64}));
  EXPECT_EQ(productTime(machine, DType::kF32, {1, 64, 64, 512}), picosecondsOf(1e-6 + 8 * 524288 / 1e12)) << "too far";
}

// In steps gelu takes three times what the formula says where it is small, and as long as that where it is large.
TEST(MachineTest, CallsMeasuredInStepsOverrideFormulas) {
  const Machine machine = *Machine::parse(
      "flops = 1e12\nmemory_bandwidth = 1e9\nlaunch_latency = 0\nprofile gelu f32 0 1000 = 3e-6\n"
      "profile gelu f32 0 4003 = 4.003e-6\nprofile contract f32 2000 10 10 10 10 = 1e-6\n"
      "profile contract f32 2000 10 100 10 1 = 2e-6\n");
  const auto gelu = [&](int64_t bytes) { return kernelTime(machine, {.bytes = bytes, .kernel = "gelu"}); };
  EXPECT_EQ(gelu(1000), picosecondsOf(3e-6));
  EXPECT_NEAR(inSeconds(gelu(2001)), std::sqrt(3) * 2.001e-6, 1e-10) << "half way between both, in doublings";
  EXPECT_NEAR(inSeconds(gelu(1100)), 3 * 1.1e-6, 0.05e-6) << "the near one counts";
  EXPECT_EQ(gelu(1 << 30), picosecondsOf((1 << 30) / 1e9)) << "far from both: as the larger one, and no less";
  EXPECT_EQ(gelu(8), picosecondsOf(3 * 8e-9)) << "and no more than the smaller one";
  EXPECT_EQ(kernelTime(machine, {.bytes = 1000, .kernel = "relu"}), picosecondsOf(1e-6)) << "another kernel";
  EXPECT_EQ(kernelTime(machine, {.type = DType::kF64, .bytes = 1000, .kernel = "gelu"}), picosecondsOf(1e-6));
  const KernelWork thin = {.flops = 2000, .bytes = 10, .product = {{10, 10, 10, 1}}, .kernel = "contract"};
  EXPECT_EQ(kernelTime(machine, thin), picosecondsOf(2e-6)) << "as much arithmetic, other sizes";
}

// Convolutions were measured with twice and half as many rows, each fast, and with half as many columns and half as
// many sums, which are slow: half the sums and half the columns are slow, not the rows between.
TEST(MachineTest, CallsBetweenMeasuredOnesDoNotTakeWhatOthersCost) {
  const auto flopsOf = [](int64_t m, int64_t n, int64_t k) { return 2 * m * n * k; };
  std::string text = "flops = 1e12\nmemory_bandwidth = 1e15\nlaunch_latency = 0\n";
  const auto measure = [&](int64_t m, int64_t n, int64_t k, double slowdown) {
    absl::StrAppend(&text, "profile conv2d f32 ", flopsOf(m, n, k), " 1000 ", m, " ", n, " ", k, " = ",
                    slowdown * static_cast<double>(flopsOf(m, n, k)) / 1e12, "\n");
  };
  for (const int64_t m : {64, 128, 512, 1024}) {
    measure(m, 64, 64, 2);
    measure(m, 32, 64, 4);
    measure(m, 64, 32, 4);
  }
  const Machine machine = *Machine::parse(text);
  const double flops = static_cast<double>(flopsOf(256, 64, 64));
  const auto slowdownWith = [&](int64_t bytes) {
    const KernelWork work = {.flops = flops, .bytes = bytes, .product = {{1, 256, 64, 64}}, .kernel = "conv2d"};
    return inSeconds(kernelTime(machine, work)) / (flops / 1e12);
  };
  EXPECT_NEAR(slowdownWith(1000), 2, 0.1);
}

// Of two calls with the sizes of one product, one of which has strides and reads four times the bytes.
TEST(MachineTest, CallsOfOneProductDifferInTheirBytes) {
  const Machine machine = *Machine::parse(
      "flops = 1e12\nlaunch_latency = 0\nprofile conv2d f32 2000000 8000 100 100 100 = 4e-6\n"
      "profile conv2d f32 2000000 32000 100 100 100 = 9e-6\n");
  const auto timeWith = [&](int64_t bytes) {
    const KernelWork work = {.flops = 2e6, .bytes = bytes, .product = {{1, 100, 100, 100}}, .kernel = "conv2d"};
    return inSeconds(kernelTime(machine, work));
  };
  EXPECT_NEAR(timeWith(8000), 4e-6, 1e-11);
  EXPECT_NEAR(timeWith(32000), 9e-6, 1e-11);
  EXPECT_NEAR(timeWith(16000), 6e-6, 1e-8) << "between them, in doublings";
}

// Added to a sum of 4 KB by a kernel of which calls were measured, or of none.
TEST(MachineTest, AProductThatAddsReadsTheSumAfterItsArithmetic) {
  const std::string text =
      "flops = 1e12\nmemory_bandwidth = 1e9\nlaunch_latency = 1e-6\nprofile contract f32 2000000 8000 100 100 100 = "
      "1.5e-5\n";
  const KernelWork product = {.flops = 2e6, .bytes = 8000, .product = {{1, 100, 100, 100}}, .kernel = "contract"};
  KernelWork both = product;
  both.sum = {4000, "contract_accumulate"};
  const Machine machine = *Machine::parse(text);
  EXPECT_EQ(kernelTime(machine, product), picosecondsOf(1.5e-5));
  EXPECT_EQ(kernelTime(machine, both), picosecondsOf(1.9e-5));
  EXPECT_NEAR(leastKernelSeconds(machine, both), 1.5e-5 / 9 * 8, 1e-10) << "the product alone, without the launch";
  const Machine measured = *Machine::parse(text + "profile contract_accumulate f32 2000000 12000 100 100 100 = 1e-5\n");
  EXPECT_EQ(kernelTime(measured, product), picosecondsOf(1.5e-5));
  EXPECT_EQ(kernelTime(measured, both), picosecondsOf(1e-5));
  EXPECT_NEAR(leastKernelSeconds(measured, both), 1e-5 / 13 * 12, 1e-10) << "added to the sum, without the launch";
  EXPECT_NEAR(leastKernelSeconds(measured, product), 1.5e-5 / 9 * 8, 1e-10);
  EXPECT_TRUE(isMeasured(measured, both));
  const Machine other = *Machine::parse("profile contract_accumulate f32 2000000 12000 100 100 100 = 1e-5\n");
  EXPECT_TRUE(isMeasured(other, both));
  EXPECT_FALSE(isMeasured(other, product));
}

// No plan is below the bound, whatever the formulas or the table say of its products.
TEST(MachineTest, NoKernelIsBelowTheLeastTime) {
  for (const std::string& name : Machine::names()) {
    Machine machine = *Machine::parse(name);
    for (const bool measured : {false, true}) {
      if (measured) {
        machine.profiles = {{DType::kBF16, 512, 512, 512, 2e-7}, {DType::kBF16, 4096, 512, 512, 1e-3}};
      }
      for (const int64_t m : {1, 100, 512, 1000, 4096, 5000}) {
        const ProductShape shape = {1, m, 512, 512};
        const KernelWork work = {DType::kBF16, shape.flopsPerSum() * 512, 2 * (m * 1024 + 512 * 512), shape};
        EXPECT_GE(inSeconds(kernelTime(machine, work)), leastKernelSeconds(machine, work) * (1 - 1e-6)) << name << m;
      }
      machine.kernels = {{"gelu", DType::kF32, 0, 1000, 0, 0, 0, 1e-3},
                         {"gelu", DType::kF32, 0, 100000, 0, 0, 0, 1e-5}};
      for (const int64_t bytes : {1, 500, 1000, 30000, 100000, 1000000}) {
        const KernelWork part = {.bytes = bytes, .kernel = "gelu"};
        const KernelWork whole = {.bytes = 8 * bytes, .kernel = "gelu"};
        EXPECT_GE(inSeconds(kernelTime(machine, part)), leastKernelSeconds(machine, whole) / 8 * (1 - 1e-6)) << bytes;
      }
    }
  }
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
  EXPECT_EQ(transferTime(machine, 8, 3'000'000), picosecondsOf(3e-6 + 3e6 / 2.33e11));
  EXPECT_EQ(transferTime(machine, 16, 3'000'000), picosecondsOf(1e-5 + 3e6 / 2.2e10));
}

// Eight fast devices on one node, then eight slow ones on two.
constexpr char kTwoKinds[] = R"(
name = mixed
source = a test
flops_bf16 = 4e12       # both
link_latency = 1e-6
network_latency = 2e-5
network_bandwidth = 8e9
[kind fast]
flops = 3e12
memory_bandwidth = 2e11
memory = 80e9
link_bandwidth = 2e11
devices_per_node = 8
nodes = 1
tile = 128x256
multiprocessors = 108
profile matmul f32 64 64 64 = 3e-6
[kind slow]
source = another test
flops = 1e12
memory_bandwidth = 3e11
memory = 32e9
link_bandwidth = 1e11
launch_latency = 5e-6
devices_per_node = 4
nodes = 2
)";

TEST(MachineKindsTest, RanksLieOnKindsInOrder) {
  const absl::StatusOr<Machine> machine = Machine::parse(kTwoKinds);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->devices(), 16);
  ASSERT_EQ(machine->kinds.size(), 2);
  const Machine fast = machine->of(0, 8);
  EXPECT_EQ(fast.name, "fast");
  EXPECT_EQ(fast.print(), machine->kinds[0].print());
  EXPECT_EQ(fast.rate(DType::kF32), 3e12);
  EXPECT_EQ(fast.rate(DType::kBF16), 4e12) << "what stands before the sections";
  EXPECT_EQ(fast.memory, 80'000'000'000);
  EXPECT_TRUE(fast.kinds.empty());
  EXPECT_EQ(machine->of(12, 4).name, "slow");
  EXPECT_EQ(machine->of(12, 4).launchLatency, 5e-6);
  EXPECT_EQ(machine->of(16, 4).name, "slow") << "beyond the last device";
  EXPECT_EQ(Machine().of(3, 4).print(), Machine().print()) << "all alike";
}

TEST(MachineKindsTest, RanksOfSeveralKindsHaveTheSlowestFigures) {
  const Machine machine = *Machine::parse(kTwoKinds);
  const Machine both = machine.of(6, 4);
  EXPECT_EQ(both.name, "fast+slow");
  EXPECT_EQ(both.flops, 1e12);
  EXPECT_EQ(both.memoryBandwidth, 2e11) << "of the fast ones";
  EXPECT_EQ(both.memory, 32'000'000'000);
  EXPECT_EQ(both.linkBandwidth, 1e11);
  EXPECT_EQ(both.launchLatency, 5e-6);
  EXPECT_EQ(both.tile.rows, 0) << "as those with the least flops";
  EXPECT_TRUE(both.profiles.empty()) << "of one kind alone";
  EXPECT_EQ(both.perNode(4), 2) << "two of each kind, so on two nodes";
  EXPECT_EQ(both.networkShare(), 1e9) << "of eight devices that share 8e9, not of four";
  EXPECT_EQ(machine.of(0, 16).perNode(16), 4);
  EXPECT_EQ(machine.print(), Machine::parse(kTwoKinds)->print());
  EXPECT_EQ(machine.flops, 1e12) << "without asking for ranks, what holds of all of them";
  EXPECT_EQ(machine.memory, 32'000'000'000);
}

TEST(MachineKindsTest, ProductsAreAddedWhereAllKindsAddThem) {
  const std::string add = "fused_accumulation = 1\n";
  const Machine one = *Machine::parse(absl::StrReplaceAll(kTwoKinds, {{"[kind fast]\n", "[kind fast]\n" + add}}));
  EXPECT_EQ(one.of(0, 4).fusedAccumulation, 1);
  EXPECT_EQ(one.of(6, 4).fusedAccumulation, 0) << "the slow ones do not";
  EXPECT_EQ(Machine::parse(add + kTwoKinds)->of(6, 4).fusedAccumulation, 1);
}

TEST(MachineKindsTest, ReadsTheKindsThatItPrints) {
  const Machine machine = *Machine::parse(kTwoKinds);
  const std::string text = machine.print();
  const absl::StatusOr<Machine> read = Machine::parse(text);
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
  EXPECT_EQ(read->print(), text);
  EXPECT_EQ(read->name, "mixed");
  EXPECT_EQ(read->source, "a test");
  for (size_t kind = 0; kind < 2; ++kind) {
    EXPECT_EQ(read->kinds[kind].print(), machine.kinds[kind].print());
  }
  EXPECT_EQ(read->kinds[1].source, "another test");
  EXPECT_THAT(text.substr(0, text.find('[')), AllOf(HasSubstr("link_latency"), ::testing::Not(HasSubstr("nodes"))));
  EXPECT_THAT(text.substr(text.find('[')), ::testing::Not(HasSubstr("link_latency"))) << "what is alike stands once";
}

TEST(MachineKindsTest, ErrorsNameTheKind) {
  const std::string node = "devices_per_node = 8\nnodes = 1\n";
  EXPECT_EQ(errorOf("flops = 1e12\n[kind a]\n" + node + "[kind b]\nflops = 2e12\n" + node), "no error");
  EXPECT_THAT(
      errorOf("[kind a]\n" + node + "[kind a]\n" + node),
      AllOf(HasSubstr("line 4"), HasSubstr("kind 'a' is there already, with 1 nodes"), HasSubstr("one section")));
  EXPECT_THAT(errorOf("[kind a]\ndevices_per_node = 8\n"), AllOf(HasSubstr("[kind a]"), HasSubstr("nodes is missing")));
  EXPECT_THAT(errorOf("[kind a]\nnodes = 1\n"), AllOf(HasSubstr("[kind a]"), HasSubstr("without devices_per_node")));
  EXPECT_THAT(errorOf("[kind a]\ndevices_per_node = 8\nnodes = 2\n"), HasSubstr("without network_bandwidth"));
  EXPECT_THAT(errorOf("nodes = 2\n[kind a]\n" + node), AllOf(HasSubstr("line 2"), HasSubstr("nodes = 2 before the")));
  EXPECT_THAT(errorOf("profile matmul f32 4 5 6 = 1\n[kind a]\n" + node), HasSubstr("profile lines before the first"));
  EXPECT_THAT(errorOf("[kind a]\ncores = 3\n" + node), AllOf(HasSubstr("[kind a]"), HasSubstr("cores of one kind")));
  EXPECT_THAT(errorOf("[kind a]\nprofile gelu f32 0 5 = 1\n" + node), HasSubstr("whose devices are alike"));
  EXPECT_THAT(errorOf("[kind a]\nname = b\n" + node), AllOf(HasSubstr("line 2"), HasSubstr("kind 'a': key 'name'")));
  EXPECT_THAT(errorOf("[kind a]\nflops = -1\n" + node),
              AllOf(HasSubstr("line 2"), HasSubstr("kind 'a': value '-1' of 'flops' is not a number > 0")));
  EXPECT_THAT(errorOf("[kind a]\n" + node + "flopss = 1\n"),
              AllOf(HasSubstr("line 4"), HasSubstr("kind 'a': unknown key 'flopss', perhaps 'flops'")));
  EXPECT_THAT(errorOf("[kind]\n"), AllOf(HasSubstr("'[kind]' is no section"), HasSubstr("[kind NAME]")));
  EXPECT_THAT(errorOf("[kind a b]\n"), HasSubstr("'[kind a b]' is no section"));
  EXPECT_THAT(errorOf("[kinds a]\n"), HasSubstr("'[kinds a]' is no section"));
}

// No kind takes less for anything, whatever its tiles, its launch and what was measured on it.
TEST(MachineKindsTest, NoKindIsFasterThanTheFastest) {
  Machine machine = *Machine::parse(kTwoKinds);
  machine.kinds[1].profiles = {{DType::kF32, 64, 64, 64, 5.05e-6}};  // soon after its launch
  const Machine fastest = machine.fastest();
  EXPECT_EQ(fastest.memory, 80'000'000'000);
  EXPECT_EQ(Machine().fastest().print(), Machine().print());
  for (const Machine& kind : machine.kinds) {
    EXPECT_GE(fastest.networkShare() + fastest.linkBandwidth, kind.networkShare());
    EXPECT_LE(copyTime(fastest, 1 << 20), copyTime(kind, 1 << 20)) << kind.name;
    for (const int64_t m : {1, 64, 100, 256, 1000}) {
      for (const int64_t n : {64, 256}) {
        const ProductShape shape = {1, m, n, n};
        const auto flops = shape.flopsPerSum() * static_cast<double>(n);
        const KernelWork work = {DType::kF32, flops, 4 * (2 * m * n + n * n), shape};
        EXPECT_LE(leastKernelSeconds(fastest, work), inSeconds(kernelTime(kind, work)) * (1 + 1e-6)) << kind.name << m;
        const KernelWork other = {DType::kBF16, work.flops, work.bytes};
        EXPECT_LE(kernelTime(fastest, other), kernelTime(kind, other)) << kind.name << m;
      }
    }
  }
}

TEST(MachineKindsTest, FilesGiveBothFiguresForEachKind) {
  const std::string path = ::testing::TempDir() + "/weft_machine_test_kinds.txt";
  const auto fileError = [&](const std::string& text) {
    std::ofstream(path) << text;
    return std::string(Machine::textOf(path).status().message());
  };
  const std::string node = "devices_per_node = 8\nnodes = 1\n";
  EXPECT_EQ(fileError("flops = 1e12\n[kind a]\nmemory_bandwidth = 1e11\n" + node), "");
  EXPECT_THAT(fileError("[kind a]\nflops = 1e12\nmemory_bandwidth = 1e11\n" + node + "[kind b]\nflops = 1e12\n" + node),
              AllOf(HasSubstr(path), HasSubstr("[kind b]"), HasSubstr("memory_bandwidth is missing beside flops")));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weft
