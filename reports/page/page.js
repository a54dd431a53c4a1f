'use strict';
// What the pages can do beyond what they show: zoom and move the timeline, tell in full
// what is pointed at or focused, read values off the charts, copy commands.
(() => {
  const svgNS = 'http:' + '//www.w3.org/2000/svg'; // a name, not an address
  const all = (q, at = document) => [...at.querySelectorAll(q)];
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
  document.documentElement.classList.add('js');

  // Times are nanoseconds since the start of the run.
  const roundStep = v => {
    const unit = 10 ** Math.floor(Math.log10(v));
    return [1, 2, 5, 10].map(f => f * unit).find(s => s >= v * 0.999);
  };
  const grouped = s => s.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  const timeAt = (ns, step) => {
    const [unit, name] = step >= 1e8 || (step >= 1e7 && ns >= 1e10) ? [1e9, ' s'] : [1e6, ' ms'];
    const digits = clamp(Math.ceil(Math.log10(unit / step) - 1e-9), 0, 6);
    const [whole, part] = (ns / unit).toFixed(digits).split('.');
    return grouped(whole) + (part ? '.' + part : '') + name;
  };

  const timeline = figure => {
    const scroll = figure.querySelector('.scroll'), plot = scroll.querySelector('.plot');
    const from = +plot.dataset.from, long = +plot.dataset.to - from;
    const ticks = plot.querySelector('.ticks'), range = figure.querySelector('.range'), bubble = figure.querySelector('.bubble');
    const items = all('.item', plot), words = all('.word', plot);
    const most = clamp(long / 2000, 8, 4000); // two microseconds a screen are enough
    let zoom = 1, queued = false;

    const width = () => scroll.clientWidth * zoom;
    const seen = () => {
      const a = from + long * scroll.scrollLeft / width();
      return [a, a + long / zoom];
    };

    // Words that do not fit a bar, that something is drawn upon, or that would cover each
    // other, are left out.
    const boxed = [...items, ...all('.badge, .lease', plot)].map(e => {
      const share = name => parseFloat(e.getAttribute(name)) / 100, y = +e.getAttribute('y');
      if (e.matches('.badge')) return { at: share('x'), dx: +e.firstElementChild.getAttribute('cx') - 9, long: 18, top: y - 8, bottom: y + 8 };
      if (e.matches('.lease')) return { at: share('x'), dx: -1, long: 8, top: y - 4, bottom: y + 25 };
      const text = e.querySelector('text'), base = text && y + +text.getAttribute('y');
      return { item: e, at: share('x'), dx: 0, long: 0, wide: share('width'), top: y, bottom: y + +e.getAttribute('height'),
        words: text && { dx: +text.getAttribute('x'), long: text.textContent.length * 6.4 + 6, top: base - 9, bottom: base + 3 } };
    });
    const fit = () => {
      const w = width();
      boxed.forEach((b, i) => {
        if (!b.words) return;
        const start = b.at * w + b.words.dx, end = start + b.words.long;
        const upon = o => o.top < b.words.bottom && o.bottom > b.words.top && o.at * w + o.dx < end && o.at * w + o.dx + Math.max(o.long, (o.wide ?? 0) * w) > start;
        let tight = end > (b.at + b.wide) * w;
        for (let j = i + 1; !tight && j < boxed.length; j++) tight = upon(boxed[j]);
        b.item.classList.toggle('tight', tight);
      });
      const right = new Map();
      for (const word of words) {
        const box = word.querySelector('rect'), row = word.getAttribute('y'), long = +box.getAttribute('width');
        const wanted = parseFloat(word.getAttribute('x')) / 100 * width() + +box.getAttribute('x');
        const start = clamp(wanted, 0, Math.max(0, width() - long)); // not beyond the edges
        word.firstElementChild.setAttribute('transform', `translate(${start - wanted} 0)`);
        const hide = start < (right.get(row) ?? -1e9) + 4;
        word.classList.toggle('hidden', hide);
        if (!hide) right.set(row, start + long);
      }
    };

    const scale = () => {
      const [a, b] = seen(), step = roundStep((b - a) / clamp(scroll.clientWidth / 100, 2, 9));
      ticks.replaceChildren();
      for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
        const x = 100 * (t - from) / long;
        if (x < 0 || x > 100) continue;
        const line = document.createElementNS(svgNS, 'line'), text = document.createElementNS(svgNS, 'text');
        line.setAttribute('class', 'grid');
        for (const [k, v] of [['x1', x + '%'], ['x2', x + '%'], ['y1', 20], ['y2', '100%']]) line.setAttribute(k, v);
        text.setAttribute('class', 'tick');
        const inset = (t - a) / (b - a);
        text.setAttribute('text-anchor', inset < 0.06 ? 'start' : inset > 0.94 ? 'end' : 'middle');
        text.setAttribute('x', x + '%');
        text.setAttribute('y', 14);
        text.textContent = timeAt(t, step);
        ticks.append(line, text);
      }
      range.textContent = timeAt(a, step / 10) + ' to ' + timeAt(b, step / 10);
    };
    const redraw = () => {
      if (queued) return;
      queued = true;
      requestAnimationFrame(() => { queued = false; scale(); });
    };

    // zoomTo keeps what is at a part of the visible width where it is.
    const zoomTo = (wanted, part = 0.5) => {
      const [a, b] = seen(), at = a + (b - a) * part;
      zoom = clamp(wanted, 1, most);
      plot.style.width = 100 * zoom + '%';
      scroll.scrollLeft = (at - from) / long * width() - part * scroll.clientWidth;
      fit();
      scale();
    };
    const move = part => { scroll.scrollLeft += part * scroll.clientWidth; };
    const actions = { in: () => zoomTo(zoom * 2), out: () => zoomTo(zoom / 2), all: () => zoomTo(1), back: () => move(-0.5), on: () => move(0.5) };
    for (const button of all('[data-do]', figure)) button.addEventListener('click', actions[button.dataset.do]);

    const show = item => {
      bubble.textContent = item.getAttribute('aria-label');
      bubble.hidden = false;
      const box = item.getBoundingClientRect(), at = figure.getBoundingClientRect();
      const middle = clamp((Math.max(box.left, at.left) + Math.min(box.right, at.right)) / 2, at.left, at.right) - at.left;
      bubble.style.left = clamp(middle - bubble.offsetWidth / 2, 8, at.width - bubble.offsetWidth - 8) + 'px';
      const above = box.top - at.top - bubble.offsetHeight - 6;
      bubble.style.top = (above > 0 ? above : box.bottom - at.top + 6) + 'px';
    };
    const hide = () => { bubble.hidden = true; };
    plot.addEventListener('pointerover', e => { const item = e.target.closest('[aria-label]'); if (item && item !== plot) show(item); });
    plot.addEventListener('pointerout', hide);
    plot.addEventListener('focusin', e => show(e.target));
    plot.addEventListener('focusout', hide);

    // One operation at a time can be focused; the arrow keys go on from there.
    const starts = item => parseFloat(item.getAttribute('x'));
    const lanes = [];
    for (const item of items) (lanes[+item.dataset.lane] ??= []).push(item);
    for (const lane of lanes) lane?.sort((a, b) => starts(a) - starts(b));
    const focus = item => {
      item.setAttribute('tabindex', '-1');
      const x = starts(item) / 100 * width(), end = x + parseFloat(item.getAttribute('width')) / 100 * width();
      if (x < scroll.scrollLeft || Math.min(end, x + 40) > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x - scroll.clientWidth / 3;
      item.focus({ preventScroll: true });
    };
    const nextTo = (item, key) => {
      let i = +item.dataset.lane;
      const lane = lanes[i];
      if (key === 'ArrowLeft' || key === 'ArrowRight') return lane[lane.indexOf(item) + (key === 'ArrowRight' ? 1 : -1)];
      for (i += key === 'ArrowDown' ? 1 : -1; i >= 0 && i < lanes.length; i += key === 'ArrowDown' ? 1 : -1) {
        if (lanes[i]) return lanes[i].reduce((best, x) => Math.abs(starts(x) - starts(item)) < Math.abs(starts(best) - starts(item)) ? x : best);
      }
    };
    scroll.addEventListener('keydown', e => {
      const item = e.target.closest('.item');
      const done = () => { e.preventDefault(); e.stopPropagation(); };
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === '+' || e.key === '=') { actions.in(); done(); }
      else if (e.key === '-') { actions.out(); done(); }
      else if (e.key === '0') { actions.all(); done(); }
      else if (e.key === 'Enter' && !item) { const first = plot.querySelector('.item.told') || items[0]; if (first) focus(first); done(); }
      else if (e.key === 'Escape' && item) { scroll.focus(); done(); }
      else if (item && e.key.startsWith('Arrow')) { const next = nextTo(item, e.key); if (next) focus(next); done(); }
    });

    scroll.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      zoomTo(zoom * Math.exp(-clamp(e.deltaY, -120, 120) / 300), (e.clientX - scroll.getBoundingClientRect().left) / scroll.clientWidth);
    }, { passive: false });
    let grip = null; // fingers scroll by themselves
    scroll.addEventListener('pointerdown', e => { if (e.pointerType === 'mouse' && e.button === 0) grip = { x: e.clientX, left: scroll.scrollLeft }; });
    addEventListener('pointermove', e => { if (grip) { scroll.classList.add('dragged'); scroll.scrollLeft = grip.left + grip.x - e.clientX; } });
    for (const over of ['pointerup', 'pointercancel']) addEventListener(over, () => { grip = null; scroll.classList.remove('dragged'); });
    scroll.addEventListener('scroll', redraw);
    addEventListener('resize', () => { fit(); redraw(); });
    fit();
    scale();
  };

  const chart = figure => {
    const area = figure.querySelector('.area'), plot = area.querySelector('.plot'), cross = plot.querySelector('.cross'), readout = figure.querySelector('.readout');
    const curves = JSON.parse(figure.dataset.chart).filter(c => c.at);
    for (const c of curves) c.at = c.at.map(Number);
    if (!curves.length) return;
    let at = null;
    const nearest = (c, x) => {
      let low = 0, high = c.at.length - 1;
      while (high - low > 1) { const middle = (low + high) >> 1; if (c.at[middle] <= x) low = middle; else high = middle; }
      if (c.at[high] <= x) return high;
      return c.steps || x - c.at[low] <= c.at[high] - x ? low : high;
    };
    const show = x => {
      at = clamp(x, 0, 1);
      const first = curves.reduce((a, b) => b.at.length > a.at.length ? b : a), i = nearest(first, at);
      readout.textContent = first.x[i] + ': ' + curves.map(c => c.name + ' ' + c.y[nearest(c, first.at[i])]).join(', ');
      const line = cross.querySelector('line');
      line.setAttribute('x1', 100 * first.at[i] + '%');
      line.setAttribute('x2', 100 * first.at[i] + '%');
      cross.removeAttribute('hidden');
    };
    const hide = () => { at = null; cross.setAttribute('hidden', ''); readout.textContent = ''; };
    const point = e => { const box = plot.getBoundingClientRect(); show((e.clientX - box.left) / box.width); };
    area.addEventListener('pointermove', point);
    area.addEventListener('pointerdown', point);
    area.addEventListener('pointerleave', hide);
    area.addEventListener('blur', hide);
    area.addEventListener('keydown', e => {
      if (e.key === 'Escape') return hide();
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[e.key];
      if (!step) return;
      e.preventDefault();
      show((at ?? 0.5) + step);
    });
    const drawn = all('path.curve', plot);
    all('.legend li', figure).forEach((li, i) => {
      if (!drawn[i] || drawn.length < 2) return;
      const lit = on => () => { plot.classList.toggle('dim', on); drawn[i].classList.toggle('lit', on); };
      li.tabIndex = 0;
      for (const event of ['pointerenter', 'focus']) li.addEventListener(event, lit(true));
      for (const event of ['pointerleave', 'blur']) li.addEventListener(event, lit(false));
    });
  };

  // The clipboard is not open to files, and selecting is.
  const copy = button => button.addEventListener('click', async () => {
    const code = button.parentElement.querySelector('code');
    let done = false;
    try { await navigator.clipboard.writeText(code.textContent); done = true; } catch {
      getSelection().selectAllChildren(code);
      done = document.execCommand('copy');
    }
    button.textContent = done ? 'copied' : 'selected';
    setTimeout(() => { button.textContent = 'copy'; }, 2000);
  });

  // A link to something folded unfolds it.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && target.closest('details');
    if (details) { details.open = true; target.scrollIntoView(); }
  };

  all('.timeline').forEach(timeline);
  all('.chart').forEach(chart);
  all('.copy').forEach(copy);
  addEventListener('hashchange', unfold);
  unfold();
})();
