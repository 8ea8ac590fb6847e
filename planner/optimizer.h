// The optimizers: what a user says of one, and what each can be told.
//
// Names, formulas and defaults are PyTorch's, but for LAMB (You et al. 2020, as the paper has it) and Lion (Chen et al.
// 2023). Of the step t, counted from 1, with the gradient g, which is clipped already:
//
//   sgd        d = g + wd p; b = momentum b + (1 - dampening) d, in the first step d; p -= lr (nesterov: d + momentum
//   b,
//              else b)
//   adam       g += wd p; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
//              p -= lr m' / (sqrt(v') + epsilon), m' = m / (1 - beta1^t), v' = v / (1 - beta2^t)
//   adamw      p *= 1 - lr wd, then as adam without its decay
//   adagrad    g += wd p; s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + epsilon); s begins with `initial`
//   rmsprop    g += wd p; v = alpha v + (1 - alpha) g^2; u = g / (sqrt(v) + epsilon); b = momentum b + u; p -= lr b;
//              centered: m = alpha m + (1 - alpha) g, and v - m^2 stands for v in u
//   lamb       u = m' / (sqrt(v') + epsilon) + wd p; p -= lr ||p|| / ||u|| u, norms over the whole tensor, their ratio
//   1
//              where one is 0
//   lion       p *= 1 - lr wd; p -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g
//   adafactor  w = t^beta2_decay; of a matrix (the last two dimensions): r += w (mean of g^2 over the last dimension -
//              r), c likewise over the last but one; v = r c / max(mean of r, epsilon); else v += w (g^2 - v);
//              u = g / sqrt(max(v, epsilon^2)); p *= 1 - lr wd;
//              p -= max(epsilon2, rms(p)) min(lr, 1 / sqrt(t)) / max(1, rms(u) / clip_threshold) u
//              (Shazeer and Stern 2018)
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

namespace optim {

// What some parameters have otherwise.
struct Group {
  std::optional<double> lrFactor = {};  // their learning rate is so many times the program's
  std::optional<double> weightDecay = {};
  bool frozen = false;  // they have no gradient and are not updated
};
// By parameter-name pattern ('*' and '?'), the first match counts: {{"*.bias", {.weightDecay = 0}}}. A pattern that no
// parameter matches is an error.
using Groups = std::vector<std::pair<std::string, Group>>;

struct Sgd {
  double lr = 0.01;
  double momentum = 0.0;
  bool nesterov = false;
  double weightDecay = 0.0;  // added to the gradient (L2)
  double dampening = 0.0;
  Groups groups = {};
};
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.0;  // added to the gradient (L2)
  Groups groups = {};
};
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weightDecay = 0.01;  // shrinks the parameter (decoupled)
  Groups groups = {};
};
struct Adagrad {
  double lr = 0.01;
  double lrDecay = 0.0;
  double weightDecay = 0.0;  // added to the gradient (L2)
  double initial = 0.0;      // of the sums of squares
  double epsilon = 1e-10;
  Groups groups = {};
};
struct RmsProp {
  double lr = 0.01;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weightDecay = 0.0;  // added to the gradient (L2)
  double momentum = 0.0;
  bool centered = false;
  Groups groups = {};
};
struct Lamb {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weightDecay = 0.01;  // part of the direction
  Groups groups = {};
};
struct Lion {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weightDecay = 0.0;  // shrinks the parameter (decoupled)
  Groups groups = {};
};
struct Adafactor {
  double lr = 0.01;
  double beta2Decay = -0.8;
  double epsilon = 0x1p-23;    // that of f32
  double epsilon2 = 1e-3;      // least size of a parameter
  double clipThreshold = 1.0;  // most that the root mean square of a direction is
  double weightDecay = 0.0;    // shrinks the parameter (decoupled)
  Groups groups = {};
};
// None: parameters change as the graph says (Graph::update, Graph::assign), and no other way.
struct Own {};

}  // namespace optim

// Any of the optimizers; made from one.
struct Optimizer {
  std::string kind;
  std::vector<std::pair<std::string, double>> settings;  // a flag is 0 or 1
  optim::Groups groups;

  Optimizer(const optim::Sgd& o);        // NOLINT
  Optimizer(const optim::Adam& o);       // NOLINT
  Optimizer(const optim::AdamW& o);      // NOLINT
  Optimizer(const optim::Adagrad& o);    // NOLINT
  Optimizer(const optim::RmsProp& o);    // NOLINT
  Optimizer(const optim::Lamb& o);       // NOLINT
  Optimizer(const optim::Lion& o);       // NOLINT
  Optimizer(const optim::Adafactor& o);  // NOLINT
  Optimizer(const optim::Own& o);        // NOLINT
  // Made from kind and settings, as a file has them; checkRequest says whether they are known.
  Optimizer(std::string kind, std::vector<std::pair<std::string, double>> settings, optim::Groups groups = {})
      : kind(std::move(kind)), settings(std::move(settings)), groups(std::move(groups)) {}

  // The optimizer of that kind with its defaults. Error: an unknown kind, with the list of all.
  static absl::StatusOr<Optimizer> named(const std::string& kind);

  // The value of a setting; where it is not given, the default of the optimizer's kind. 0 for a setting it does not
  // have.
  double setting(const std::string& name) const;
  void set(const std::string& name, double value);
  // Does the program update its parameters itself, as optim::Own says?
  bool isOwn() const;

  // What the first pattern that matches says of a parameter.
  optim::Group groupOf(const std::string& parameter) const;
};

// Names of all settings of all kinds, and whether one is a flag.
std::vector<std::string> optimizerSettings();
bool isFlagSetting(const std::string& name);

// What can be said of an optimizer without the program: kinds, settings and their ranges. Errors name the optimizer,
// the setting, its value and the range.
absl::Status checkOptimizer(const Optimizer& optimizer);

}  // namespace weft
