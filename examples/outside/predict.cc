// Runs a plan without the compiler: predict PLAN PARAMETERS, of the files that train writes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/io/parameters.h"
#include "runtime/plan/plan_file.h"

namespace {

absl::Status predict(const std::string& planPath, const std::string& parameters) {
  WEFT_ASSIGN_OR_RETURN(weft::plan::Plan plan, weft::readPlan(planPath));
  const weft::KernelRegistry kernels = weft::cpuKernels();
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<weft::Executor> executor,
                        weft::Executor::create(std::move(plan), kernels));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  WEFT_RETURN_IF_ERROR(weft::loadParameters(*executor, parameters));

  // A square of 8 x 8 points: one batch.
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) {
    x.insert(x.end(), {(i / 8 - 3.5F) / 4, (i % 8 - 3.5F) / 4});
  }
  WEFT_RETURN_IF_ERROR(executor->writeTensor("x", x.data(), x.size() * sizeof(float)));
  WEFT_RETURN_IF_ERROR(executor->runStep());
  WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor->readTensor("product"));
  std::vector<float> product(bytes.size() / sizeof(float));
  std::memcpy(product.data(), bytes.data(), bytes.size());

  float worst = 0;
  for (size_t i = 0; i < product.size(); ++i) {
    worst = std::max(worst, std::abs(product[i] - x[2 * i] * x[2 * i + 1]));
  }
  std::cout << x[0] << " * " << x[1] << " = " << product[0] << "; the largest error of " << product.size()
            << " products: " << worst << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: predict PLAN PARAMETERS\n";
    return 2;
  }
  const absl::Status status = predict(argv[1], argv[2]);
  if (!status.ok()) {
    std::cerr << "predict: " << status << "\n";
    return 1;
  }
  return 0;
}
