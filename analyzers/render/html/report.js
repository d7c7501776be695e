
(function () {
  "use strict";
  var source = document.getElementById("chart-data");
  if (!source || typeof uPlot === "undefined") { return; }
  var data = JSON.parse(source.textContent);
  var axis = data.has_time ? "time" : "event";
  var charts = [];
  var hidden = {};  // names of curves switched off, kept over a change of the axis
  var dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2], [12, 4], [6, 2, 2, 2]];

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

  // A share of a colour (#rrggbb) on the background, opaque: areas on top of each other stay apart.
  function tint(name, share) {
    var a = colour(name), b = colour("--back"), out = "#";
    for (var i = 1; i < 7; i += 2) {
      var mixed = parseInt(a.slice(i, i + 2), 16) * share + parseInt(b.slice(i, i + 2), 16) * (1 - share);
      out += ("0" + Math.round(mixed).toString(16)).slice(-2);
    }
    return out;
  }

  function bytes(n) {
    if (n == null) { return "–"; }
    var units = ["B", "KiB", "MiB", "GiB", "TiB"], at = 0;
    while (n >= 1024 && at < units.length - 1) { n /= 1024; at++; }
    return (at === 0 || n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)) + " " + units[at];
  }
  // Ticks that are round in the unit shown.
  function byteTicks(self, axisIndex, low, high) {
    var step = 1, wanted = Math.max(2, self.height / 42);
    while ((high - low) / step > wanted) { step *= 2; }
    var ticks = [];
    for (var at = Math.ceil(low / step) * step; at <= high; at += step) { ticks.push(at); }
    return ticks;
  }
  function position(v) {
    if (v == null) { return "–"; }
    return axis === "time" ? (v >= 100 ? v.toFixed(1) : v.toPrecision(4)) + " s" : Math.round(v).toLocaleString("en") + " calls";
  }
  function shortPosition(v) {
    if (axis === "time") { return +v.toPrecision(6) + " s"; }
    return v >= 1e6 ? +(v / 1e6).toPrecision(4) + " M" : v >= 1e3 ? +(v / 1e3).toPrecision(4) + " k" : String(v);
  }

  // The value of a curve (xs ascending) at every x of `all`: held from the left or drawn straight;
  // nothing outside of it.
  function resample(all, xs, ys, held) {
    var out = new Array(all.length), at = 0;
    for (var i = 0; i < all.length; i++) {
      var x = all[i];
      while (at + 1 < xs.length && xs[at + 1] <= x) { at++; }
      if (xs.length === 0 || x < xs[0] || x > xs[xs.length - 1]) {
        out[i] = null;
      } else if (held || at + 1 >= xs.length) {
        out[i] = ys[at];
      } else {
        var span = xs[at + 1] - xs[at];
        out[i] = span > 0 ? ys[at] + (ys[at + 1] - ys[at]) * (x - xs[at]) / span : ys[at];
      }
    }
    return out;
  }
  function scaled(list) { return axis === "time" ? list.map(function (ns) { return ns / 1e9; }) : list; }
  function joined(curves) {
    var all = [];
    curves.forEach(function (c) { all = all.concat(c.x); });
    all.sort(function (a, b) { return a - b; });
    all = all.filter(function (x, i) { return i === 0 || x !== all[i - 1]; });
    return [all].concat(curves.map(function (c) { return resample(all, c.x, c.y, c.held); }));
  }

  function programCurves() {
    var live = axis === "time" ? data.by_time : data.by_event;
    var curves = [{ name: "live (requested)", x: scaled(live[axis]), y: live.live, held: true, fill: true, colour: "--c1" }];
    if (data.program.time.length) {
      var x = scaled(data.program[axis]);
      curves.push({ name: "resident, anonymous", x: x, y: data.program.anonymous, colour: "--c2" });
      curves.push({ name: "resident, all", x: x, y: data.program.resident, colour: "--c8", dash: [3, 3] });
    }
    return curves;
  }
  function replayCurves() {
    var curves = [];
    data.candidates.forEach(function (c, i) {
      if (i === 0) {
        curves.push({ name: "requested", x: scaled(c[axis]), y: c.requested, fill: true, colour: "--c8" });
      }
      curves.push({ name: c.label, x: scaled(c[axis]), y: c.resident, colour: "--c" + (i % 7 + 1), dash: dashes[i % dashes.length] });
    });
    return curves;
  }

  // What lies below a curve and above the next one is one part of the memory.
  function partsCurves() {
    var c = data.candidates[Number(parts && parts.value) || 0];
    if (!c) { return []; }
    return [["committed, not resident", "committed", "--c8"], ["resident, holds nothing live", "resident", "--c2"],
            ["holes in pages with live blocks", "live_pages", "--c5"], ["requested", "requested", "--c1"]].map(function (p) {
      return { name: p[0], x: scaled(c[axis]), y: c[p[1]], colour: p[2], fill: true };
    });
  }

  function draw(id, curves, range) {
    var target = document.getElementById(id);
    if (!target || !curves.length) { return; }
    target.textContent = "";
    var text = colour("--muted"), grid = { stroke: colour("--line"), width: 1 };
    var series = [{ label: axis === "time" ? "at" : "after", value: function (u, v) { return position(v); } }];
    curves.forEach(function (c) {
      series.push({
        label: c.name, stroke: colour(c.colour), width: c.fill ? 1.5 : 2, dash: c.dash,
        fill: c.fill ? tint(c.colour, 0.3) : undefined, show: !hidden[id + c.name],
        paths: c.held ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: false },
        value: function (u, v) { return bytes(v); }
      });
    });
    var chart = new uPlot({
      width: target.clientWidth, height: 340, series: series,
      scales: { x: { time: false, range: function (u, low, high) { return zoomed(u, range, low, high); } }, y: { range: function (u, low, high) { return [0, high > 0 ? high * 1.04 : 1]; } } },
      axes: [
        { stroke: text, grid: grid, ticks: grid, values: function (u, vs) { return vs.map(shortPosition); } },
        { stroke: text, grid: grid, ticks: grid, size: 78, splits: byteTicks, values: function (u, vs) { return vs.map(bytes); } }
      ],
      cursor: { sync: { key: "report", scales: ["x", null] }, points: { size: 6 } },
      hooks: { setSeries: [function (u, i) { if (i != null && u.series[i]) { hidden[id + u.series[i].label] = !u.series[i].show; } }] }
    }, joined(curves), target);
    charts.push(chart);
  }
  // Both charts begin and end together unless one is zoomed into.
  function zoomed(u, range, low, high) {
    var xs = u.data[0];
    var whole = low === xs[0] && high === xs[xs.length - 1];
    return whole || low == null ? range : [low, high];
  }

  function drawAll() {
    charts.forEach(function (c) { c.destroy(); });
    charts = [];
    var program = programCurves(), replay = replayCurves(), last = 0;
    program.concat(replay).forEach(function (c) { last = Math.max(last, c.x.length ? c.x[c.x.length - 1] : 0); });
    var range = [0, last > 0 ? last : 1];
    draw("chart-program", program, range);
    draw("chart-replay", replay, range);
    draw("chart-parts", partsCurves(), range);
  }

  var parts = document.getElementById("parts-of");
  if (parts) {
    data.candidates.forEach(function (c, i) { parts.add(new Option(c.label, String(i))); });
    parts.addEventListener("change", drawAll);
  }
  var controls = document.querySelector(".controls");
  if (controls) {
    controls.hidden = false;
    controls.querySelectorAll("button").forEach(function (button) {
      if (!data.has_time) { button.hidden = true; }
      button.addEventListener("click", function () {
        axis = button.dataset.axis;
        controls.querySelectorAll("button").forEach(function (b) { b.setAttribute("aria-pressed", String(b === button)); });
        drawAll();
      });
    });
  }
  document.querySelectorAll("figure.chart").forEach(function (figure) { figure.hidden = false; });
  drawAll();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  var waiting = null;
  window.addEventListener("resize", function () { clearTimeout(waiting); waiting = setTimeout(drawAll, 150); });
})();
