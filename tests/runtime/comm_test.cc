// Conformance of a Communicator: every collective against a plain computation on the whole, 1 to 8 ranks, sizes that do
// not divide evenly into slices, several tensors at once, overlapping memory, aborts.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

#include "runtime/comm/inproc.h"
#include "tests/runtime/carried_fibers.h"

namespace weft {
namespace {

enum class Ranks { kThreads, kFibers };

// Every test runs with ranks of both kinds.
class CommunicatorTest : public ::testing::TestWithParam<Ranks> {
 public:
  CommunicatorTest() { kindOfRanks = GetParam(); }
  static Ranks kindOfRanks;
};
Ranks CommunicatorTest::kindOfRanks = Ranks::kThreads;
INSTANTIATE_TEST_SUITE_P(Ranks, CommunicatorTest, ::testing::Values(Ranks::kThreads, Ranks::kFibers),
                         [](const ::testing::TestParamInfo<Ranks>& info) {
                           return std::string(info.param == Ranks::kThreads ? "threads" : "fibers");
                         });

// Runs `body` on a thread per rank, or on fibers of two threads.
void onRanks(int64_t ranks, InprocWorld& world, const std::function<void(InprocCommunicator&)>& body) {
  const auto onRank = [&](int64_t rank) {
    InprocCommunicator communicator(world, rank);
    body(communicator);
  };
  if (CommunicatorTest::kindOfRanks == Ranks::kFibers) {
    return testing::CarriedFibers(ranks).run(2, onRank);
  }
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { onRank(rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::vector<int64_t> all(int64_t ranks) {
  std::vector<int64_t> group;
  for (int64_t rank = ranks - 1; rank >= 0; --rank) {
    group.push_back(rank);  // backwards: the order of the group counts, not the rank
  }
  return group;
}

// A value that sums inexactly, so that another order of folding would show.
template <typename T>
T valueOf(int64_t rank, int64_t tensor, int64_t element) {
  const int64_t hash = (rank * 7919 + tensor * 104729 + element * 31 + 17) % 1013;
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(hash - 500) / static_cast<T>(7);
  } else {
    return static_cast<T>(std::is_same_v<T, uint8_t> ? hash % 2 : hash - 500);
  }
}

template <typename T>
T folded(T a, T b, Reduction reduction) {
  // A sum of truth values is their or.
  if (reduction == Reduction::kSum && !std::is_same_v<T, uint8_t>) {
    return static_cast<T>(a + b);
  }
  return reduction != Reduction::kMin ? std::max(a, b) : std::min(a, b);
}

template <typename T>
std::vector<T> inputOf(int64_t rank, int64_t tensor, int64_t elements) {
  std::vector<T> values;
  for (int64_t i = 0; i < elements; ++i) {
    values.push_back(valueOf<T>(rank, tensor, i));
  }
  return values;
}

template <typename T>
std::vector<T> foldedInputs(const std::vector<int64_t>& group, int64_t tensor, int64_t elements, Reduction reduction) {
  std::vector<T> result = inputOf<T>(group[0], tensor, elements);
  for (size_t m = 1; m < group.size(); ++m) {
    const std::vector<T> other = inputOf<T>(group[m], tensor, elements);
    for (int64_t i = 0; i < elements; ++i) {
      result[i] = folded(result[i], other[i], reduction);
    }
  }
  return result;
}

template <typename T>
void checkAllReduce(DType type, int64_t ranks, bool inPlace) {
  const std::vector<int64_t> group = all(ranks);
  const std::vector<int64_t> sizes = {1, 7, 0, 5003};
  InprocWorld world(ranks);
  world.prepare(group);
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    onRanks(ranks, world, [&](InprocCommunicator& comm) {
      std::vector<std::vector<T>> in;
      std::vector<std::vector<T>> out;
      std::vector<CollectiveTensor> tensors;
      for (size_t t = 0; t < sizes.size(); ++t) {
        in.push_back(inputOf<T>(comm.rank(), t, sizes[t]));
        out.emplace_back(sizes[t]);
        tensors.push_back({in[t].data(), inPlace ? in[t].data() : out[t].data(), type, {sizes[t]}, 0, 0});
      }
      EXPECT_TRUE(comm.allReduce(group, tensors, reduction).ok());
      for (size_t t = 0; t < sizes.size(); ++t) {
        EXPECT_EQ(inPlace ? in[t] : out[t], foldedInputs<T>(group, t, sizes[t], reduction)) << "tensor " << t;
      }
    });
  }
}

TEST_P(CommunicatorTest, AllReduceFoldsInGroupOrder) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (const bool inPlace : {false, true}) {
      checkAllReduce<float>(DType::kF32, ranks, inPlace);
      checkAllReduce<double>(DType::kF64, ranks, inPlace);
      checkAllReduce<int32_t>(DType::kI32, ranks, inPlace);
      checkAllReduce<int64_t>(DType::kI64, ranks, inPlace);
      checkAllReduce<uint8_t>(DType::kBool, ranks, inPlace);
    }
  }
}

// Elements of a [a, b, c] array, numbered by a function of the index.
using Index = std::array<int64_t, 3>;
std::vector<float> filled(const Index& shape, const std::function<float(const Index&)>& value) {
  std::vector<float> result;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t k = 0; k < shape[2]; ++k) {
        result.push_back(value({i, j, k}));
      }
    }
  }
  return result;
}

float at(int64_t rank, const Index& shape, const Index& i) {
  return valueOf<float>(rank, 0, (i[0] * shape[1] + i[1]) * shape[2] + i[2]);
}

// One tensor through `call`; the input may stand in the output's memory, the result is compared with `expected(rank)`.
void check(int64_t ranks, const Index& shape, std::pair<int, int> dims, bool overlap,
           const std::function<absl::Status(InprocCommunicator&, const std::vector<CollectiveTensor>&)>& call,
           const std::function<std::vector<float>(int64_t)>& expected) {
  InprocWorld world(ranks);
  world.prepare(all(ranks));
  onRanks(ranks, world, [&](InprocCommunicator& comm) {
    const std::vector<float> want = expected(comm.rank());
    const std::vector<float> in = filled(shape, [&](const Index& i) { return at(comm.rank(), shape, i); });
    std::vector<float> memory(std::max(in.size(), want.size()));
    std::copy(in.begin(), in.end(), memory.begin());
    std::vector<float> out(want.size());
    const CollectiveTensor tensor = {memory.data(), overlap ? memory.data() : out.data(),
                                     DType::kF32,   {shape.begin(), shape.end()},
                                     dims.first,    dims.second};
    const absl::Status status = call(comm, {tensor});
    EXPECT_TRUE(status.ok()) << status;
    if (overlap) {
      out.assign(memory.begin(), memory.begin() + static_cast<int64_t>(want.size()));
    }
    EXPECT_EQ(out, want) << ranks << " ranks, dims " << dims.first << " " << dims.second << " overlap " << overlap;
  });
}

int64_t memberAt(int64_t ranks, int64_t place) {
  return ranks - 1 - place;
}  // as all() orders them

TEST_P(CommunicatorTest, AllGatherJoinsAlongAnyDimension) {
  const Index shape = {3, 2, 5};
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (int dim = 0; dim < 3; ++dim) {
      for (const bool overlap : {false, true}) {
        Index whole = shape;
        whole[dim] *= ranks;
        const auto expected = [&](int64_t) {
          return filled(whole, [&](Index i) {
            const int64_t rank = memberAt(ranks, i[dim] / shape[dim]);
            i[dim] %= shape[dim];
            return at(rank, shape, i);
          });
        };
        const auto call = [&](InprocCommunicator& comm, const auto& tensors) {
          return comm.allGather(all(ranks), tensors);
        };
        check(ranks, shape, {dim, 0}, overlap, call, expected);
      }
    }
  }
}

TEST_P(CommunicatorTest, ReduceScatterKeepsOwnPart) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (int dim = 0; dim < 3; ++dim) {
      for (const bool overlap : {false, true}) {
        Index part = {3, 2, 5};
        Index shape = part;
        shape[dim] *= ranks;
        const auto expected = [&](int64_t self) {
          return filled(part, [&](Index i) {
            i[dim] += memberAt(ranks, self) * part[dim];
            float sum = at(memberAt(ranks, 0), shape, i);
            for (int64_t m = 1; m < ranks; ++m) {
              sum += at(memberAt(ranks, m), shape, i);
            }
            return sum;
          });
        };
        const auto call = [&](InprocCommunicator& comm, const auto& tensors) {
          return comm.reduceScatter(all(ranks), tensors, Reduction::kSum);
        };
        check(ranks, shape, {dim, 0}, overlap, call, expected);
      }
    }
  }
}

TEST_P(CommunicatorTest, AllToAllMovesBlocks) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (int code = 0; code < 18; ++code) {
      const int split = code % 3;
      const int dim = code / 3 % 3;
      Index shape = {3, 2, 5};
      shape[split] *= ranks;
      Index part = {3, 2, 5};
      Index whole = part;
      whole[dim] *= ranks;
      const auto expected = [&](int64_t self) {
        return filled(whole, [&](Index i) {
          const int64_t sender = memberAt(ranks, i[dim] / part[dim]);
          i[dim] %= part[dim];
          i[split] += memberAt(ranks, self) * part[split];
          return at(sender, shape, i);
        });
      };
      const auto call = [&](InprocCommunicator& comm, const auto& tensors) {
        return comm.allToAll(all(ranks), tensors);
      };
      check(ranks, shape, {dim, split}, code >= 9, call, expected);
    }
  }
}

TEST_P(CommunicatorTest, PermuteReceivesFromItsSource) {
  const Index shape = {3, 2, 5};
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (const bool overlap : {false, true}) {
      const auto source = [&](int64_t rank) { return (rank * 3 + 1) % ranks; };
      const auto expected = [&](int64_t self) {
        return filled(shape, [&](const Index& i) { return at(source(self), shape, i); });
      };
      const auto call = [&](InprocCommunicator& comm, const auto& tensors) {
        return comm.permute(source(comm.rank()), tensors);
      };
      check(ranks, shape, {0, 0}, overlap, call, expected);
    }
  }
}

TEST_P(CommunicatorTest, DisjointGroupsDoNotMeet) {
  InprocWorld world(6);
  for (const std::vector<int64_t>& group : {std::vector<int64_t>{0, 2, 4}, {1, 3, 5}, {0, 1}, {2, 3}, {4, 5}}) {
    world.prepare(group);
  }
  onRanks(6, world, [&](InprocCommunicator& comm) {
    const int64_t rank = comm.rank();
    for (int64_t round = 0; round < 300; ++round) {
      int64_t value = rank;
      const std::vector<CollectiveTensor> tensors = {{&value, &value, DType::kI64, {1}, 0, 0}};
      EXPECT_TRUE(comm.allReduce({rank % 2, rank % 2 + 2, rank % 2 + 4}, tensors, Reduction::kSum).ok());
      EXPECT_EQ(value, 3 * (rank % 2) + 6);
      value = rank;
      EXPECT_TRUE(comm.allReduce({rank / 2 * 2, rank / 2 * 2 + 1}, tensors, Reduction::kMax).ok());
      EXPECT_EQ(value, rank / 2 * 2 + 1);
    }
  });
}

TEST_P(CommunicatorTest, AbortWakesEverybody) {
  for (int64_t ranks = 2; ranks <= 8; ++ranks) {
    InprocWorld world(ranks);
    world.prepare(all(ranks));
    onRanks(ranks, world, [&](InprocCommunicator& comm) {
      int64_t value = 1;
      const std::vector<CollectiveTensor> tensors = {{&value, &value, DType::kI64, {1}, 0, 0}};
      if (comm.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        comm.abort();
        return;
      }
      EXPECT_TRUE(absl::IsAborted(comm.allReduce(all(ranks), tensors, Reduction::kSum)));
      EXPECT_TRUE(absl::IsAborted(comm.permute(0, tensors)));
    });
  }
}

TEST_P(CommunicatorTest, RefusesWhatItCannotDo) {
  InprocWorld world(1);
  world.prepare({0});
  InprocCommunicator comm(world, 0);
  uint16_t value[2] = {0, 0};
  const std::vector<CollectiveTensor> half = {{value, value, DType::kBF16, {2}, 0, 0}};
  EXPECT_TRUE(comm.allGather({0}, half).ok());
  EXPECT_FALSE(comm.allReduce({1}, half, Reduction::kSum).ok());
  EXPECT_EQ(comm.allReduce({0}, half, Reduction::kSum).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(comm.reduceScatter({0}, half, Reduction::kSum).code(), absl::StatusCode::kUnimplemented);
}

// In place an all_reduce needs no memory beside the tensors; where the output lies askew over the input, it does.
TEST_P(CommunicatorTest, AllReduceStagesOnlySkewedOverlap) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (const int64_t shift : {0, 1, 700, 1000}) {
      constexpr int64_t kElements = 1000;
      InprocWorld world(ranks);
      world.prepare(all(ranks));
      onRanks(ranks, world, [&](InprocCommunicator& comm) {
        std::vector<float> memory = inputOf<float>(comm.rank(), 0, kElements);
        memory.resize(kElements + shift);
        const std::vector<CollectiveTensor> tensors = {
            {memory.data(), memory.data() + shift, DType::kF32, {kElements}, 0, 0}};
        EXPECT_TRUE(comm.allReduce(all(ranks), tensors, Reduction::kSum).ok());
        const std::vector<float> got(memory.begin() + shift, memory.end());
        EXPECT_EQ(got, foldedInputs<float>(all(ranks), 0, kElements, Reduction::kSum)) << ranks << " shift " << shift;
        EXPECT_EQ(comm.stagingBytes() > 0, shift == 1 || shift == 700);
      });
    }
  }
}

TEST_P(CommunicatorTest, NansSurviveMaximaAndMinima) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  InprocWorld world(3);
  world.prepare(all(3));
  onRanks(3, world, [&](InprocCommunicator& comm) {
    for (const Reduction reduction : {Reduction::kMax, Reduction::kMin}) {
      for (int64_t owner = 0; owner < 3; ++owner) {
        float value = comm.rank() == owner ? kNan : static_cast<float>(comm.rank());
        EXPECT_TRUE(comm.allReduce(all(3), {{&value, &value, DType::kF32, {1}, 0, 0}}, reduction).ok());
        EXPECT_TRUE(std::isnan(value)) << "NaN from rank " << owner;
      }
    }
  });
}

// Two of four ranks do not come: the others give up, one with the names of the missing.
TEST_P(CommunicatorTest, TimeoutNamesTheMissingRanks) {
  InprocWorld world(4, {.timeout = std::chrono::milliseconds(50)});
  world.prepare({3, 2, 1, 0});
  std::mutex mutex;
  std::vector<absl::Status> late;
  onRanks(4, world, [&](InprocCommunicator& comm) {
    int64_t value = 1;
    const std::vector<CollectiveTensor> tensors = {{&value, &value, DType::kI64, {1}, 0, 0}};
    EXPECT_TRUE(comm.allReduce({3, 2, 1, 0}, tensors, Reduction::kSum).ok());
    if (comm.rank() % 2 == 1) {
      return;
    }
    const absl::Status status = comm.allReduce({3, 2, 1, 0}, tensors, Reduction::kSum);
    const std::lock_guard<std::mutex> lock(mutex);
    late.push_back(status);
  });
  int64_t named = 0;
  for (const absl::Status& status : late) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsAborted(status)) << status;
    if (absl::IsDeadlineExceeded(status)) {
      ++named;
      EXPECT_NE(std::string(status.message()).find("waited 50 ms"), std::string::npos) << status;
      EXPECT_NE(std::string(status.message()).find("not there: rank 3, rank 1;"), std::string::npos) << status;
    }
  }
  EXPECT_GE(named, 1);
  InprocCommunicator any(world, 1);
  EXPECT_TRUE(absl::IsAborted(any.permute(0, {})));
}

}  // namespace
}  // namespace weft
