// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/tensor_stats.h"

namespace gradcheck {

// Least squares over stacked sketches: which combination of the columns (ranks' locals, or means
// of micro-steps) is the value? Every block holds one tensor's sketches and is divided by its own
// rounding scale, so that all rows carry errors of one size and large tensors do not drown small
// ones. Own code because it is a few lines; numbers of columns stay small.
class Stack {
 public:
  explicit Stack(std::size_t columns) : columns_(columns) {}

  // `scale` > 0: Σ|w|·‖g‖₂ of the tensor. Requires columns.size() == the stack's columns.
  void add(const Sketch& value, std::span<const Sketch> columns, double scale);

  std::size_t columns() const { return columns_.size(); }
  std::size_t blocks() const { return blocks_; }

 private:
  friend struct Fit fit(const Stack& stack, std::span<const double> guess);
  std::vector<std::vector<double>> columns_;
  std::vector<double> value_;
  std::size_t blocks_ = 0;
};

struct Fit {
  bool refused = true;
  std::string reason;  // of a refusal
  double condition = 0;
  std::vector<double> weights;
  std::vector<double> errors;  // one standard error each, the larger of classic and robust (HC1)
  // How far each weight moves at most when every block carries an error of its whole scale: the
  // errors of a rounded sum may be in step with one column (a small gradient is absorbed by a large
  // one), which no standard error shows.
  std::vector<double> leverage;
  double residual = 0;  // root mean square over blocks of ‖residual‖ / scale
};

// Solves for the difference to `guess`, so that a right guess is confirmed to full precision.
// Refused: fewer than 24 rows to spare, or a condition number above 1e4.
Fit fit(const Stack& stack, std::span<const double> guess);

}  // namespace gradcheck
