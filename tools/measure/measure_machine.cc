#include "tools/measure/measure_machine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"
#include "runtime/comm/inproc.h"
#include "runtime/exec/rank_threads.h"
#include "tools/measure/median.h"

namespace weft::tools {
namespace {

struct ProductShape {
  int64_t m, n, k;
};
// Squares, the tall and the flat products of language models, and small ones.
constexpr ProductShape kProducts[] = {
    {32, 32, 32},     {64, 64, 64},     {128, 128, 128},    {192, 192, 192},    {256, 256, 256},  {384, 384, 384},
    {512, 512, 512},  {768, 768, 768},  {1024, 1024, 1024}, {1536, 1536, 1536}, {16, 256, 256},   {64, 256, 256},
    {256, 768, 256},  {256, 256, 1024}, {256, 1024, 256},   {512, 384, 384},    {512, 1152, 384}, {512, 384, 1536},
    {512, 1536, 384}, {1024, 384, 384}, {1024, 1536, 384},  {1024, 384, 1536},  {2048, 128, 512}, {2048, 512, 128},
    {4096, 64, 64},   {64, 4096, 64},   {64, 64, 4096},     {256, 4096, 256},   {128, 8192, 384}, {8, 2048, 2048},
};
// Elements of the results of an element-wise operator; one element is little but the launch.
constexpr int64_t kStreams[] = {1, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24};
// Bytes of each rank's tensor before a collective.
constexpr int64_t kMessages[] = {1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15,
                                 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22, 1 << 24};
constexpr CollectiveKind kCollectives[] = {CollectiveKind::kAllGather, CollectiveKind::kAllToAll,
                                           CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
                                           CollectiveKind::kPermute};
// What caches may hold; streams beyond it are bound by memory.
constexpr int64_t kBeyondCaches = 1 << 25;
constexpr int64_t kSmallMessage = 1 << 13;
constexpr int64_t kLargeMessage = 1 << 20;
// All is measured so often, one after the other: what else keeps the host busy for a while spoils one of the medians of
// each figure, not all of some.
constexpr int64_t kTurns = 3;
constexpr int kLeastRepeats = 2;  // in each turn

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// 64-byte aligned.
class Room {
 public:
  explicit Room(int64_t bytes) : bytes_(bytes + 64, 1) {}
  void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(bytes_.data()) + 63) / 64 * 64); }

 private:
  std::vector<char> bytes_;
};

// Seconds of one call of `work` on rank 0 while all ranks of a group call it: the median over as many as fit.
class Timer {
 public:
  Timer(RankThreads& threads, double seconds) : threads_(threads), seconds_(seconds) {}

  double secondsOf(int64_t ranks, const std::function<void(int64_t rank)>& work) {
    const double once = run(ranks, 1, work)[0];  // also warms the caches
    const int batch = static_cast<int>(std::clamp(1e-4 / std::max(once, 1e-8), 1.0, 1000.0));
    const int repeats =
        static_cast<int>(std::clamp(seconds_ / std::max(once * batch, 1e-7), 1.0 * kLeastRepeats, 200.0));
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      times.push_back(run(ranks, batch, work)[0] / batch);
    }
    return median(std::move(times));
  }

 private:
  std::vector<double> run(int64_t ranks, int calls, const std::function<void(int64_t rank)>& work) {
    std::vector<double> spent(threads_.ranks());
    threads_.run([&](int64_t rank) {
      if (rank < ranks) {
        const double begin = now();
        for (int call = 0; call < calls; ++call) {
          work(rank);
        }
        spent[rank] = now() - begin;
      }
    });
    return spent;
  }

  RankThreads& threads_;
  double seconds_;
};

// A kernel with memory of its own on every rank.
class KernelOnRanks {
 public:
  static absl::StatusOr<std::unique_ptr<KernelOnRanks>> create(const KernelSpec& spec, RankThreads& threads) {
    auto made = std::make_unique<KernelOnRanks>();
    made->ranks_.resize(threads.ranks());
    absl::Status status;
    threads.run([&](int64_t rank) {
      absl::StatusOr<std::unique_ptr<Kernel>> kernel = cpuKernels().create(spec);
      if (!kernel.ok()) {
        if (rank == 0) {
          status = kernel.status();
        }
        return;
      }
      Rank& mine = made->ranks_[rank];
      mine.kernel = *std::move(kernel);
      for (const TensorSpec& input : spec.inputs) {
        mine.rooms.push_back(std::make_unique<Room>(input.bytes()));
        mine.inputs.push_back(mine.rooms.back()->data());
      }
      for (const TensorSpec& output : spec.outputs) {
        mine.rooms.push_back(std::make_unique<Room>(output.bytes()));
        mine.outputs.push_back(mine.rooms.back()->data());
      }
      mine.rooms.push_back(std::make_unique<Room>(mine.kernel->workspaceBytes()));
      mine.arguments.inputs = mine.inputs.data();
      mine.arguments.outputs = mine.outputs.data();
      mine.arguments.workspace = mine.rooms.back()->data();
    });
    WEFT_RETURN_IF_ERROR(status);
    return made;
  }

  void run(int64_t rank) { ranks_[rank].kernel->run(ranks_[rank].arguments).IgnoreError(); }

 private:
  struct Rank {
    std::unique_ptr<Kernel> kernel;
    std::vector<std::unique_ptr<Room>> rooms;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    KernelArguments arguments;
  };
  std::vector<Rank> ranks_;
};

// One collective of a group of ranks, each with a tensor of so many bytes.
class CollectiveOnRanks {
 public:
  CollectiveOnRanks(CollectiveKind kind, int64_t ranks, int64_t bytes) : kind_(kind), world_(ranks) {
    const int64_t elements = bytes / 4 / ranks * ranks;
    const int64_t grown = kind == CollectiveKind::kAllGather ? elements * ranks : elements;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      group_.push_back(rank);
      communicators_.push_back(std::make_unique<InprocCommunicator>(world_, rank));
      communicators_.back()->reserve(1, 0);
      inputs_.push_back(std::make_unique<Room>(elements * 4));
      outputs_.push_back(std::make_unique<Room>(grown * 4));
      // Of two dimensions, so that an all_to_all can cut one and join along the other.
      tensors_.push_back(
          {{inputs_.back()->data(), outputs_.back()->data(), DType::kF32, {ranks, elements / ranks}, 0, 0}});
      if (kind == CollectiveKind::kAllToAll) {
        tensors_.back()[0].dim = 1;
      }
    }
    world_.prepare(group_);
  }

  void run(int64_t rank) { call(*communicators_[rank], tensors_[rank], rank).IgnoreError(); }

 private:
  absl::Status call(Communicator& communicator, const std::vector<CollectiveTensor>& tensors, int64_t rank) {
    switch (kind_) {
      case CollectiveKind::kAllGather:
        return communicator.allGather(group_, tensors);
      case CollectiveKind::kAllToAll:
        return communicator.allToAll(group_, tensors);
      case CollectiveKind::kReduceScatter:
        return communicator.reduceScatter(group_, tensors, Reduction::kSum);
      case CollectiveKind::kAllReduce:
        return communicator.allReduce(group_, tensors, Reduction::kSum);
      default:
        return communicator.permute((rank + 1) % static_cast<int64_t>(group_.size()), tensors);
    }
  }

  CollectiveKind kind_;
  InprocWorld world_;
  std::vector<int64_t> group_;
  std::vector<std::unique_ptr<InprocCommunicator>> communicators_;
  std::vector<std::unique_ptr<Room>> inputs_;
  std::vector<std::unique_ptr<Room>> outputs_;
  std::vector<std::vector<CollectiveTensor>> tensors_;
};

class Measuring {
 public:
  Measuring(const MeasureOptions& options, RankThreads& threads)
      : options_(options),
        threads_(threads),
        timer_(threads, options.seconds / static_cast<double>(kTurns * figures())),
        seconds_(figures()) {}

  absl::StatusOr<Measurement> run() {
    Measurement made;
    for (int64_t turn = 0; turn < kTurns; ++turn) {
      next_ = 0;
      WEFT_ASSIGN_OR_RETURN(made, measured());
    }
    made.cores = options_.ranks > hostCores() ? hostCores() : 0;
    return made;
  }

 private:
  // In this turn and those before.
  absl::StatusOr<Measurement> measured() {
    Measurement made;
    for (const ProductShape& shape : kProducts) {
      KernelSpec spec;
      spec.name = kMatmulKernel;
      spec.inputs = {{DType::kF32, {shape.m, shape.k}}, {DType::kF32, {shape.k, shape.n}}};
      spec.outputs = {{DType::kF32, {shape.m, shape.n}}};
      WEFT_ASSIGN_OR_RETURN(const double seconds, secondsOf(spec, "products"));
      made.products.push_back({shape.m, shape.n, shape.k, seconds});
    }
    for (const int64_t elements : kStreams) {
      KernelSpec spec;
      spec.name = "relu";
      spec.inputs = {{DType::kF32, {elements}}};
      spec.outputs = {{DType::kF32, {elements}}};
      WEFT_ASSIGN_OR_RETURN(const double seconds, secondsOf(spec, "memory"));
      made.streams.push_back({2 * 4 * elements, seconds});
    }
    for (int64_t ranks = 2; ranks <= options_.ranks; ++ranks) {
      for (const CollectiveKind kind : kCollectives) {
        for (const int64_t bytes : kMessages) {
          made.collectives.push_back(collective(kind, ranks, bytes / 4 / ranks * ranks * 4));
        }
      }
    }
    return made;
  }

  // That are measured.
  int64_t figures() const {
    return static_cast<int64_t>(std::size(kProducts) + std::size(kStreams)) +
           (options_.ranks - 1) * static_cast<int64_t>(std::size(kCollectives) * std::size(kMessages));
  }

  // The next figure: the median of what it was in each turn.
  double figure(double seconds, const std::string& what) {
    std::vector<double>& turns = seconds_[next_++];
    turns.push_back(seconds);
    ++done_;
    if (options_.progress) {
      options_.progress(what, done_, kTurns * figures());
    }
    return median(turns);
  }

  absl::StatusOr<double> secondsOf(const KernelSpec& spec, const std::string& what) {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<KernelOnRanks> kernel, KernelOnRanks::create(spec, threads_));
    return figure(timer_.secondsOf(std::min(options_.ranks, hostCores()), [&](int64_t rank) { kernel->run(rank); }),
                  what);
  }

  // Of as many groups at once as there are ranks for. Where they take turns on fewer cores, each has its part of the
  // time.
  CollectiveTime collective(CollectiveKind kind, int64_t ranks, int64_t bytes) {
    std::vector<std::unique_ptr<CollectiveOnRanks>> groups;
    for (int64_t group = 0; group < options_.ranks / ranks; ++group) {
      groups.push_back(std::make_unique<CollectiveOnRanks>(kind, ranks, bytes));
    }
    const int64_t measuring = static_cast<int64_t>(groups.size()) * ranks;
    const double seconds = timer_.secondsOf(measuring, [&](int64_t rank) { groups[rank / ranks]->run(rank % ranks); });
    const int64_t turns = (measuring + hostCores() - 1) / hostCores();  // on the most crowded core
    return {kind, ranks, receivedBytes(kind, ranks, bytes),
            figure(seconds / static_cast<double>(turns), absl::StrCat("collectives of ", ranks, " ranks"))};
  }

  const MeasureOptions& options_;
  RankThreads& threads_;
  Timer timer_;
  std::vector<std::vector<double>> seconds_;  // of each figure, in each turn
  size_t next_ = 0;
  int64_t done_ = 0;
};

// Latency: the median over messages so small that bytes do not count; bandwidth: over those so large that nothing else
// does.
void fitLinks(const std::vector<CollectiveTime>& times, Machine& machine) {
  Machine stepsOnly = machine;
  stepsOnly.launchLatency = 0;
  stepsOnly.linkLatency = 1;
  std::vector<double> latencies;
  std::vector<double> bandwidths;
  for (const CollectiveTime& time : times) {
    const double steps = inSeconds(collectiveCost(stepsOnly, time.kind, {time.ranks, time.ranks}, 0));
    if (time.bytesReceived <= kSmallMessage) {
      latencies.push_back(std::max(time.seconds - machine.launchLatency, 0.0) / steps);
    } else if (time.bytesReceived >= kLargeMessage) {
      bandwidths.push_back(static_cast<double>(time.bytesReceived) / time.seconds);
    }
  }
  machine.linkLatency = median(std::move(latencies));
  machine.linkBandwidth = median(std::move(bandwidths));
}

}  // namespace

absl::StatusOr<Measurement> measureHost(const MeasureOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<RankThreads> threads,
                        RankThreads::create(options.ranks, options.threads));
  return Measuring(options, *threads).run();
}

Machine fitted(const Measurement& measurement, int64_t bytesOfMemory) {
  Machine machine;
  machine.memory = bytesOfMemory;
  machine.cores = measurement.cores;
  machine.launchLatency = measurement.streams.front().seconds;
  std::vector<double> bandwidths;
  for (const StreamTime& stream : measurement.streams) {
    if (stream.bytes >= kBeyondCaches) {
      bandwidths.push_back(static_cast<double>(stream.bytes) / stream.seconds);
    }
  }
  machine.memoryBandwidth = median(std::move(bandwidths));
  std::vector<double> rates;
  for (const ProductTime& product : measurement.products) {
    const double rate = product.flops() / product.seconds;
    const double streamed = static_cast<double>(product.bytes()) / machine.memoryBandwidth;
    if (product.seconds > 2 * streamed && product.seconds > 10 * machine.launchLatency) {
      rates.push_back(rate);
    }
  }
  machine.flops = rates.empty() ? machine.flops : median(std::move(rates));
  fitLinks(measurement.collectives, machine);
  return machine;
}

std::vector<ProductProfile> profilesOf(const Measurement& measurement) {
  std::vector<ProductProfile> profiles;
  for (const ProductTime& product : measurement.products) {
    profiles.push_back({DType::kF32, product.m, product.n, product.k, product.seconds});
  }
  return profiles;
}

Deviation deviationOf(const Measurement& measurement, const Machine& machine) {
  Deviation deviation;
  for (const ProductTime& product : measurement.products) {
    const double price = inSeconds(kernelTime(
        machine,
        {.flops = product.flops(), .bytes = product.bytes(), .product = {{1, product.m, product.n, product.k}}}));
    deviation.products.push_back(std::abs(price / product.seconds - 1));
  }
  for (const StreamTime& stream : measurement.streams) {
    deviation.streams.push_back(std::abs(inSeconds(copyTime(machine, stream.bytes)) / stream.seconds - 1));
  }
  for (const CollectiveTime& time : measurement.collectives) {
    const Picoseconds price = collectiveCost(machine, time.kind, {time.ranks, time.ranks}, time.bytesReceived);
    deviation.collectives.push_back(std::abs(inSeconds(price) / time.seconds - 1));
  }
  return deviation;
}

}  // namespace weft::tools
