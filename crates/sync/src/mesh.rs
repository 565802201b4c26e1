// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The network effect: clock differences around a loop of edges sum to 0. The least-squares solution
//! explains every edge's offset as the difference of two hosts' offsets.
//!
//! Node form, the least squares of `offset_far - offset_near = ahead` over the hosts' offsets, by
//! conjugate gradients: a random mesh of degree 10 is an expander, on which 30 steps reach 10^-9
//! whatever its size, where elimination would fill a matrix of all pairs. It gives the loop form's
//! answer (the least change of the edges after which every loop sums to 0), which a test holds.
//!
//! Edges that disagree with all others lose their weight: iteratively reweighted least squares, first with
//! Huber's weights, which find the neighbourhood of the majority from any start, then with Tukey's, which
//! give an outlier the weight 0.

/// An edge's measurement: `far` is ahead of `near` by `ahead`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Host, from 0.
    pub near: usize,
    /// Another host.
    pub far: usize,
    /// The far clock less the near one, in any unit.
    pub ahead: f64,
    /// Weight of the measurement: 1 / its variance, in units of `ahead` squared. 0: it says nothing.
    pub weight: f64,
}

/// The solution of all edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// By host: its clock's offset, relative to the mean of its connected component.
    pub offsets: Vec<f64>,
    /// By edge: residual, its measurement minus the solution.
    pub residuals: Vec<f64>,
    /// By edge: robust weight, from 0 (excluded) to 1.
    pub trust: Vec<f64>,
    /// Standard deviation of the trusted edges' errors in units of what their weights say, from all residuals; 0 if no edge is
    /// redundant.
    pub scale: f64,
    /// Degrees of freedom of the residuals: how many edges are redundant.
    pub free: f64,
    /// By host: number of its connected component, 0 the largest. Offsets of different components cannot be
    /// compared.
    pub components: Vec<usize>,
}

/// Residuals in standard deviations, beyond which an edge has less weight (Huber) or none (Tukey), for 95 %
/// efficiency.
const LESS: f64 = 1.345;
const OUT: f64 = 4.685;
/// Median of the absolute value of a standard normal variable.
pub(crate) const MAD_TO_SIGMA: f64 = 1.0 / 0.6745;
const HUBER_STEPS: usize = 8;
const TUKEY_STEPS: usize = 4;
/// Residuals this small relative to the largest measurement are rounding errors.
const ROUNDING: f64 = 1e-10;
/// Relative accuracy of the least squares.
const ACCURACY: f64 = 1e-12;

/// Solves for the offsets of `hosts` hosts. Deterministic.
///
/// # Panics
/// An edge names a host that does not exist.
pub fn agree(hosts: usize, edges: &[Edge]) -> Agreement {
    // An edge that says nothing is not trusted either, however well it fits.
    let says = |edge: &Edge| if edge.weight > 0.0 { 1.0 } else { 0.0 };
    let mut trust: Vec<f64> = edges.iter().map(says).collect();
    let mut agreement = agree_once(hosts, edges, &trust, vec![0.0; hosts]);
    let in_sigmas = |(edge, value): (&Edge, f64)| value.abs() * edge.weight.sqrt();
    let largest = edges.iter().map(|edge| in_sigmas((edge, edge.ahead)));
    let rounding = ROUNDING * largest.fold(0.0, f64::max);
    for step in 0..HUBER_STEPS + TUKEY_STEPS {
        let residuals = edges.iter().zip(agreement.residuals.iter().copied());
        let residuals: Vec<f64> = residuals.map(in_sigmas).collect();
        let scale = robust_scale(edges, &residuals, hosts);
        if scale <= rounding {
            break;
        }
        let say = if step < HUBER_STEPS { huber } else { tukey };
        for ((trust, residual), edge) in trust.iter_mut().zip(&residuals).zip(edges) {
            *trust = says(edge) * say(residual / scale);
        }
        agreement = agree_once(hosts, edges, &trust, agreement.offsets);
    }
    agreement
}

/// Robust weight of an edge whose residual is `r` standard deviations.
fn huber(r: f64) -> f64 {
    if r < LESS {
        1.0
    } else {
        LESS / r
    }
}

fn tukey(r: f64) -> f64 {
    let r = r / OUT;
    if r < 1.0 {
        (1.0 - r * r).powi(2)
    } else {
        0.0
    }
}

/// `start`: offsets near the solution make it fast.
fn agree_once(hosts: usize, edges: &[Edge], trust: &[f64], start: Vec<f64>) -> Agreement {
    let weights: Vec<f64> = edges.iter().zip(trust).map(|(e, t)| e.weight * t).collect();
    let components = components(hosts, edges, &weights);
    let offsets = least_squares(edges, &weights, &components, start);
    let claim = |e: &Edge| e.ahead - (offsets[e.far] - offsets[e.near]);
    let residuals: Vec<f64> = edges.iter().map(claim).collect();
    let free = free(hosts, edges, trust, &components);
    Agreement {
        scale: scale(edges, &residuals, trust, free),
        free,
        offsets,
        residuals,
        trust: trust.to_vec(),
        components,
    }
}

/// Degrees of freedom of E trusted edges between V hosts in C connected components: E - V + C.
fn free(hosts: usize, edges: &[Edge], trust: &[f64], components: &[usize]) -> f64 {
    let count = components.iter().max().map_or(0, |most| most + 1);
    let counts = |(edge, trust): (&Edge, &f64)| if edge.weight > 0.0 { *trust } else { 0.0 };
    let said: f64 = edges.iter().zip(trust).map(counts).sum();
    said - hosts as f64 + count as f64
}

/// Standard deviation of the trusted edges' errors in units of what they say.
fn scale(edges: &[Edge], residuals: &[f64], trust: &[f64], free: f64) -> f64 {
    if free < 0.5 {
        return 0.0;
    }
    let each = edges.iter().zip(residuals).zip(trust);
    let squares: f64 = each.map(|((e, r), t)| t * e.weight * r * r).sum();
    (squares / free).sqrt()
}

/// The same from the median of the residuals in sigmas, which a few outliers do not change.
fn robust_scale(edges: &[Edge], residuals: &[f64], hosts: usize) -> f64 {
    let counted = edges.iter().zip(residuals).filter(|(e, _)| e.weight > 0.0);
    let mut absolute: Vec<f64> = counted.map(|(_, residual)| *residual).collect();
    let edges = absolute.len();
    if edges <= hosts {
        return 0.0;
    }
    let middle = absolute.len() / 2;
    let median = *absolute.select_nth_unstable_by(middle, f64::total_cmp).1;
    let shrunk = ((edges - hosts) as f64 / edges as f64).sqrt();
    median * MAD_TO_SIGMA / shrunk
}

/// By host, the number of its connected component by edges that have weight.
pub(crate) fn connected(hosts: usize, edges: &[Edge]) -> Vec<usize> {
    let weights: Vec<f64> = edges.iter().map(|edge| edge.weight).collect();
    components(hosts, edges, &weights)
}

/// By host, the number of its connected component, the largest first; a host without edges is a component.
fn components(hosts: usize, edges: &[Edge], weights: &[f64]) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..hosts).collect();
    fn root(parent: &mut [usize], mut host: usize) -> usize {
        while parent[host] != host {
            parent[host] = parent[parent[host]];
            host = parent[host];
        }
        host
    }
    for (edge, _) in edges.iter().zip(weights).filter(|(_, w)| **w > 0.0) {
        let (a, b) = (root(&mut parent, edge.near), root(&mut parent, edge.far));
        parent[a.max(b)] = a.min(b);
    }
    let roots: Vec<usize> = (0..hosts).map(|host| root(&mut parent, host)).collect();
    let mut sizes = vec![0usize; hosts];
    roots.iter().for_each(|root| sizes[*root] += 1);
    let mut order: Vec<usize> = (0..hosts).filter(|host| sizes[*host] > 0).collect();
    order.sort_by_key(|root| (std::cmp::Reverse(sizes[*root]), *root));
    let mut number = vec![0; hosts];
    order
        .iter()
        .enumerate()
        .for_each(|(n, root)| number[*root] = n);
    roots.into_iter().map(|root| number[root]).collect()
}

/// Minimises sum weight (ahead - (x_far - x_near))^2 by conjugate gradients on the weighted graph's
/// Laplacian, scaled by its diagonal; then centres every connected component on 0.
fn least_squares(
    edges: &[Edge],
    weights: &[f64],
    components: &[usize],
    start: Vec<f64>,
) -> Vec<f64> {
    let hosts = start.len();
    let mut diagonal = vec![0.0; hosts];
    let mut claims = vec![0.0; hosts];
    for (edge, w) in edges.iter().zip(weights) {
        diagonal[edge.near] += w;
        diagonal[edge.far] += w;
        claims[edge.near] -= w * edge.ahead;
        claims[edge.far] += w * edge.ahead;
    }
    let scaled = |r: &[f64]| -> Vec<f64> {
        let each = r.iter().zip(&diagonal);
        each.map(|(r, d)| if *d > 0.0 { r / d } else { 0.0 })
            .collect()
    };
    let mut x = start;
    let met = laplacian(edges, weights, &x);
    // As far as rounding lets it: what was claimed may be small beside what a start wrongly meets.
    let size = f64::max(dot(&claims, &scaled(&claims)), dot(&met, &scaled(&met)));
    let enough = size * ACCURACY * ACCURACY;
    let mut residual = claims;
    for (residual, met) in residual.iter_mut().zip(met) {
        *residual -= met;
    }
    let mut z = scaled(&residual);
    let mut direction = z.clone();
    let mut strength = dot(&residual, &z);
    for _ in 0..10 * hosts.max(10) {
        if strength <= enough || strength == 0.0 {
            break;
        }
        let image = laplacian(edges, weights, &direction);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 {
            break; // it shifts a component, which changes no edge
        }
        let step = strength / curvature;
        for host in 0..hosts {
            x[host] += step * direction[host];
            residual[host] -= step * image[host];
        }
        z = scaled(&residual);
        let next = dot(&residual, &z);
        let keep = next / strength;
        for host in 0..hosts {
            direction[host] = z[host] + keep * direction[host];
        }
        strength = next;
    }
    centre(&mut x, components);
    x
}

fn laplacian(edges: &[Edge], weights: &[f64], x: &[f64]) -> Vec<f64> {
    let mut image = vec![0.0; x.len()];
    for (edge, w) in edges.iter().zip(weights) {
        let flow = w * (x[edge.far] - x[edge.near]);
        image[edge.far] += flow;
        image[edge.near] -= flow;
    }
    image
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn centre(x: &mut [f64], components: &[usize]) {
    let mut sums = vec![(0.0, 0.0); x.len()];
    for (value, component) in x.iter().zip(components) {
        sums[*component].0 += value;
        sums[*component].1 += 1.0;
    }
    for (value, component) in x.iter_mut().zip(components) {
        *value -= sums[*component].0 / sums[*component].1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edge(near: usize, far: usize, ahead: f64) -> Edge {
        let weight = 1.0;
        Edge {
            near,
            far,
            ahead,
            weight,
        }
    }

    fn agreed(agreement: &Agreement, near: usize, far: usize) -> f64 {
        agreement.offsets[far] - agreement.offsets[near]
    }

    /// The worked example of facts/huygens.md: A to B 20, B to C -15, C to A 5, surplus 10.
    #[test]
    fn a_loops_surplus_is_spread_evenly() {
        let all = agree_once(
            3,
            &[edge(0, 1, 20.0), edge(1, 2, -15.0), edge(2, 0, 5.0)],
            &[1.0; 3],
            vec![0.0; 3],
        );
        assert!((agreed(&all, 0, 1) - (20.0 - 10.0 / 3.0)).abs() < 1e-9);
        assert!((agreed(&all, 1, 2) - (-15.0 - 10.0 / 3.0)).abs() < 1e-9);
        assert!((agreed(&all, 2, 0) - (5.0 - 10.0 / 3.0)).abs() < 1e-9);
    }

    #[test]
    fn an_edge_that_says_nothing_is_not_trusted() {
        let noisy =
            |near: usize, far: usize| far as f64 - near as f64 + ((7 * near + 3 * far) % 5) as f64;
        let mut edges = mesh(8, 4, 1, noisy);
        edges[0].weight = 0.0;
        let trust = agree(8, &edges).trust;
        assert_eq!(trust[0], 0.0);
        assert!(trust[1..].iter().any(|trust| *trust > 0.9), "{trust:?}");
    }

    #[test]
    fn islands_are_told_apart() {
        let all = agree(5, &[edge(3, 4, 7.0), edge(0, 1, 1.0), edge(1, 2, 1.0)]);
        assert_eq!(all.components, [0, 0, 0, 1, 1]);
        assert!((agreed(&all, 0, 2) - 2.0).abs() < 1e-9);
        assert!((agreed(&all, 3, 4) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_and_nothing_is_an_answer() {
        assert_eq!(agree(0, &[]).offsets, Vec::<f64>::new());
        assert_eq!(agree(2, &[]).components, [0, 1]);
    }

    /// A random mesh: a ring that connects all, and `degree` - 1 further edges a host.
    fn mesh(
        hosts: usize,
        degree: usize,
        seed: u64,
        ahead: impl Fn(usize, usize) -> f64,
    ) -> Vec<Edge> {
        let mut state = seed;
        let mut random = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        let mut edges: Vec<Edge> = (0..hosts)
            .map(|a| edge(a, (a + 1) % hosts, ahead(a, (a + 1) % hosts)))
            .collect();
        for a in 0..hosts {
            for _ in 1..degree {
                let b = (a + 1 + random() % (hosts - 1)) % hosts;
                edges.push(edge(a, b, ahead(a, b)));
            }
        }
        edges
    }

    #[test]
    fn one_wrong_edge_of_many_has_no_say() {
        let truth = |host: usize| (host * 37 % 101) as f64;
        let jitter = |a: usize, b: usize| ((a * 31 + b * 17) % 13) as f64 / 13.0 - 0.5;
        let mut edges = mesh(50, 5, 1, |a, b| truth(b) - truth(a) + 0.1 * jitter(a, b));
        edges[60].ahead += 1000.0;
        let all = agree(50, &edges);
        assert_eq!(all.trust[60], 0.0);
        assert!((all.residuals[60] - 1000.0).abs() < 0.2);
        for host in 1..50 {
            assert!((agreed(&all, 0, host) - (truth(host) - truth(0))).abs() < 0.2);
        }
        assert!(all.scale < 0.1);
    }

    /// The loop form by elimination: N = A' (A A')^-1 A d over the loops that a spanning tree closes.
    fn loop_form(hosts: usize, edges: &[Edge]) -> Vec<f64> {
        let mut tree_path: Vec<Option<Vec<f64>>> = vec![None; hosts]; // signed edges from host 0
        tree_path[0] = Some(vec![0.0; edges.len()]);
        let mut in_tree = vec![false; edges.len()];
        for _ in 0..hosts {
            for (n, e) in edges.iter().enumerate() {
                let (from, to, sign) = match (&tree_path[e.near], &tree_path[e.far]) {
                    (Some(path), None) => (path.clone(), e.far, 1.0),
                    (None, Some(path)) => (path.clone(), e.near, -1.0),
                    _ => continue,
                };
                let mut path = from;
                path[n] = sign;
                in_tree[n] = true;
                tree_path[to] = Some(path);
            }
        }
        let path = |host: usize| tree_path[host].as_ref().expect("connected");
        let loops: Vec<Vec<f64>> = (0..edges.len())
            .filter(|n| !in_tree[*n])
            .map(|n| {
                let e = edges[n];
                let mut row: Vec<f64> = path(e.near)
                    .iter()
                    .zip(path(e.far))
                    .map(|(a, b)| a - b)
                    .collect();
                row[n] += 1.0;
                row
            })
            .collect();
        let ahead: Vec<f64> = edges.iter().map(|e| e.ahead).collect();
        let rhs: Vec<f64> = loops.iter().map(|row| dot(row, &ahead)).collect();
        let square: Vec<Vec<f64>> = loops
            .iter()
            .map(|a| loops.iter().map(|b| dot(a, b)).collect())
            .collect();
        let solved = eliminate(square, rhs);
        let correction =
            |n: usize| -> f64 { loops.iter().zip(&solved).map(|(row, y)| row[n] * y).sum() };
        (0..edges.len()).map(|n| ahead[n] - correction(n)).collect()
    }

    fn eliminate(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
        let n = b.len();
        for column in 0..n {
            let pivot = (column..n)
                .max_by(|x, y| a[*x][column].abs().total_cmp(&a[*y][column].abs()))
                .expect("a row");
            a.swap(column, pivot);
            b.swap(column, pivot);
            for row in column + 1..n {
                let times = a[row][column] / a[column][column];
                let pivot = a[column].clone();
                for (value, above) in a[row].iter_mut().zip(&pivot) {
                    *value -= times * above;
                }
                b[row] -= times * b[column];
            }
        }
        for row in (0..n).rev() {
            for k in row + 1..n {
                b[row] -= a[row][k] * b[k];
            }
            b[row] /= a[row][row];
        }
        b
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn node_form_and_loop_form_agree(
            hosts in 3usize..12,
            seed: u64,
            claims in prop::collection::vec(-1000.0..1000.0, 150),
        ) {
            let mut edges = mesh(hosts, 3, seed, |_, _| 0.0);
            for (edge, claim) in edges.iter_mut().zip(&claims) {
                edge.ahead = *claim;
            }
            let nodes = agree_once(hosts, &edges, &vec![1.0; edges.len()], vec![0.0; hosts]);
            for (edge, by_loops) in edges.iter().zip(loop_form(hosts, &edges)) {
                prop_assert!((agreed(&nodes, edge.near, edge.far) - by_loops).abs() < 1e-9);
            }
        }

        #[test]
        fn what_fits_is_found_exactly(
            offsets in prop::collection::vec(-1e6..1e6f64, 2..40),
            seed: u64,
        ) {
            let edges = mesh(offsets.len(), 3, seed, |a, b| offsets[b] - offsets[a]);
            let all = agree(offsets.len(), &edges);
            for host in 1..offsets.len() {
                prop_assert!((agreed(&all, 0, host) - (offsets[host] - offsets[0])).abs() < 1e-5);
            }
        }
    }

    /// Drifts of eleven daemons on one clock, as they were told: most of them a slope's least step, up or down.
    #[test]
    fn claims_of_next_to_nothing_are_agreed_on() {
        const STEP: f64 = 2.2737367544323206e-16;
        const DOWN: u64 = 0x7336cd00cf700a;
        let others = [
            (0, -3.8920120459806643e-10),
            (2, -2.9510260901588486e-10),
            (4, -2.7719465833797596e-10),
            (5, 2.6271413844369814e-10),
            (15, -5.722229161619908e-10),
            (25, -2.807785222103121e-10),
            (29, -2.8349290914775344e-10),
            (30, 3.238594672438921e-10),
            (37, -3.2387401915912046e-10),
            (40, 2.96988901027362e-10),
            (46, 4.281116616766667e-10),
        ];
        let ends = (0..11).flat_map(|near| {
            let mut far = [1, 3, 5, 7, 9].map(|away| (near + away) % 11);
            far.sort_unstable();
            far.map(|far| (near, far))
        });
        let claim = |(n, (near, far)): (usize, (usize, usize))| {
            let step = if DOWN >> n & 1 == 1 { -STEP } else { STEP };
            let other = others.iter().find(|(edge, _)| *edge == n);
            edge(near, far, other.map_or(step, |(_, drift)| *drift))
        };
        let edges: Vec<Edge> = ends.enumerate().map(claim).collect();
        let agreement = agree(11, &edges);
        let is_small = |offset: &f64| offset.abs() < 1e-9;
        assert!(agreement.offsets.iter().all(is_small), "{agreement:?}");
    }
}
