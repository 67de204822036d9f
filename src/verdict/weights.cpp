// SPDX-License-Identifier: Apache-2.0
#include "verdict/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace gradcheck {
namespace {

constexpr std::size_t kRowsToSpare = 24;  // below, six standard errors no longer mean "never"
constexpr double kWorstCondition = 1e4;   // normal equations lose its square of 1e16

using Columns = std::vector<std::vector<double>>;
using Matrix = std::vector<std::vector<double>>;

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Normal equations: a few columns against thousands of rows, and the condition is checked.
Matrix gram(const Columns& columns) {
  Matrix result(columns.size(), std::vector<double>(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      result[i][j] = result[j][i] = dot(columns[i], columns[j]);
    }
  }
  return result;
}

// Lower triangle L with L·Lᵀ = matrix; nothing if it is not positive definite.
std::optional<Matrix> cholesky(const Matrix& matrix) {
  const std::size_t n = matrix.size();
  Matrix lower(n, std::vector<double>(n));
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j; i < n; ++i) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
      if (i == j && !(sum > 0)) return std::nullopt;
      lower[i][j] = i == j ? std::sqrt(sum) : sum / lower[j][j];
    }
  }
  return lower;
}

// Forward, then backward substitution: L·Lᵀ·x = b.
std::vector<double> solve(const Matrix& lower, std::vector<double> x) {
  const std::size_t n = lower.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= lower[i][k] * x[k];
    x[i] /= lower[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= lower[k][i] * x[k];
    x[i] /= lower[i][i];
  }
  return x;
}

std::optional<Matrix> inverse(const Matrix& matrix) {
  const auto lower = cholesky(matrix);
  if (!lower) return std::nullopt;
  Matrix result;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    std::vector<double> unit(matrix.size());
    unit[i] = 1;
    result.push_back(solve(*lower, std::move(unit)));
  }
  return result;
}

// Bounds the 2-norm of a symmetric matrix from above, so the condition is never understated.
double one_norm(const Matrix& matrix) {
  double largest = 0;
  for (const auto& row : matrix) {
    double sum = 0;
    for (const double x : row) sum += std::abs(x);
    largest = std::max(largest, sum);
  }
  return largest;
}

// Columns of unit length: the condition number then speaks of directions, not of sizes.
std::vector<double> normalise(Columns& columns) {
  std::vector<double> lengths;
  for (auto& column : columns) {
    const double length = std::sqrt(dot(column, column));
    lengths.push_back(length);
    if (!(length > 0)) continue;
    for (double& x : column) x /= length;
  }
  return lengths;
}

std::vector<double> times(const Matrix& matrix, std::span<const double> x) {
  std::vector<double> result;
  for (const auto& row : matrix) result.push_back(dot(row, x));
  return result;
}

void subtract_columns(std::vector<double>& from, const Columns& columns,
                      std::span<const double> weights) {
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= weights[c] * columns[c][i];
  }
}

// Variances of the solution: σ²·(XᵀX)⁻¹, and the same without assuming that all rows have errors
// of one size (White 1980, HC1). The larger of the two is believed.
std::vector<double> variances(const Columns& columns, const Matrix& inverted,
                              std::span<const double> residuals, double to_spare) {
  const double squares = dot(residuals, residuals);
  const double rows = static_cast<double>(residuals.size());
  std::vector<double> robust(columns.size());
  std::vector<double> row(columns.size());
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c) row[c] = columns[c][i];
    const auto influence = times(inverted, row);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      robust[c] += influence[c] * influence[c] * residuals[i] * residuals[i] * rows / to_spare;
    }
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    robust[c] = std::max(robust[c], squares / to_spare * inverted[c][c]);
  }
  return robust;
}

Fit refusal(std::string reason, double condition = 0) {
  Fit result;
  result.reason = std::move(reason);
  result.condition = condition;
  return result;
}

}  // namespace

void Stack::add(const Sketch& value, std::span<const Sketch> columns, double scale) {
  ++blocks_;
  for (std::size_t k = 0; k < value.size(); ++k) {
    // Rows without any element carry no error and would make the others look better than they are.
    const bool empty = value[k] == 0 && std::all_of(columns.begin(), columns.end(),
                                                    [k](const Sketch& s) { return s[k] == 0; });
    if (empty) continue;
    value_.push_back(value[k] / scale);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns_[c].push_back(columns[c][k] / scale);
    }
  }
}

Fit fit(const Stack& stack, std::span<const double> guess) {
  const std::size_t rows = stack.value_.size();
  if (rows < stack.columns() + kRowsToSpare) return refusal("too few elements to fit weights");
  Columns columns = stack.columns_;
  std::vector<double> residuals = stack.value_;
  subtract_columns(residuals, columns, guess);
  const auto lengths = normalise(columns);
  const Matrix normal = gram(columns);
  const auto inverted = inverse(normal);
  if (!inverted) return refusal("the locals are linearly dependent");
  const double condition = std::sqrt(one_norm(normal) * one_norm(*inverted));
  if (!(condition <= kWorstCondition)) {
    return refusal(fmt::format("condition number {:.1e}", condition), condition);
  }
  std::vector<double> projected;
  for (const auto& column : columns) projected.push_back(dot(column, residuals));
  const auto change = times(*inverted, projected);
  subtract_columns(residuals, columns, change);
  const auto spreads =
      variances(columns, *inverted, residuals, static_cast<double>(rows - columns.size()));
  const auto blocks = static_cast<double>(stack.blocks());
  Fit result;
  result.refused = false;
  result.condition = condition;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    result.weights.push_back(guess[c] + change[c] / lengths[c]);
    result.errors.push_back(std::sqrt(spreads[c]) / lengths[c]);
    result.leverage.push_back(std::sqrt(blocks * (*inverted)[c][c]) / lengths[c]);
  }
  result.residual = std::sqrt(dot(residuals, residuals) / blocks);
  return result;
}

}  // namespace gradcheck
