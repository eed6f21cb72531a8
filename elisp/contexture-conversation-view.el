;;; contexture-conversation-view.el --- What a conversation looks like  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Draws the buffer of a conversation: streamed Markdown, messages, the
;; header and the line of items.  This file only draws; it calls no server.

;;; Code:

(declare-function contexture-conversation--with-question-p "contexture-conversation-turn" (item))

(require 'cl-lib)
(require 'font-lock)
(require 'contexture-list)
(eval-when-compile (require 'subr-x))

;;; Draw streamed Markdown

;; Inserts a text that arrives in pieces and fontifies its Markdown.  A
;; complete line is drawn once; only the last line, while it is short, is
;; redrawn with each piece, so the work is proportional to the text.  A text
;; that arrives whole is drawn when it is first seen, as by jit-lock.  Code
;; between fences gets the faces of its language from a hidden buffer in
;; that language's major mode, which receives the lines as they come.
;;
;; Emacs is slow with lines of many thousand characters, so such lines are
;; broken on insertion.  `contexture-markdown--text' returns a text
;; without these breaks.

(defgroup contexture-conversation nil
  "Talk with a model in Emacs."
  :group 'contexture
  :prefix "contexture-conversation-")

(defcustom contexture-conversation-languages
  '(("elisp" . emacs-lisp-mode) ("emacs-lisp" . emacs-lisp-mode)
    ("lisp" . lisp-mode) ("common-lisp" . lisp-mode) ("cl" . lisp-mode)
    ("scheme" . scheme-mode) ("c" . c-mode) ("cpp" . c++-mode) ("c++" . c++-mode)
    ("java" . java-mode) ("js" . js-mode) ("javascript" . js-mode)
    ("json" . js-mode) ("css" . css-mode) ("html" . html-mode) ("xml" . xml-mode)
    ("sh" . sh-mode) ("bash" . sh-mode) ("shell" . sh-mode) ("console" . sh-mode)
    ("python" . python-mode) ("py" . python-mode) ("ruby" . ruby-mode)
    ("perl" . perl-mode) ("sql" . sql-mode) ("diff" . diff-mode)
    ("patch" . diff-mode) ("make" . makefile-mode) ("makefile" . makefile-mode)
    ("tex" . latex-mode) ("latex" . latex-mode) ("rs" . rust-mode)
    ("ts" . typescript-mode) ("yml" . yaml-mode) ("docker" . dockerfile-mode))
  "Alist from the language named after a code fence to its major mode.
For another language NAME, the mode is NAME-mode, if that is one of
`contexture--code-modes'."
  :type '(alist :key-type (string :tag "Language") :value-type (function :tag "Mode")))

(defconst contexture-markdown--looks
  '(face invisible display wrap-prefix contexture-link mouse-face help-echo follow-link keymap)
  "Text properties that drawing sets, besides `contexture-block'.")

(defface contexture-conversation-heading '((t :inherit (bold font-lock-function-name-face)))
  "Face of headings in an answer.")

(defface contexture-conversation-code '((t :inherit fixed-pitch))
  "Face of code between fences, below the faces of its language.")

(defface contexture-conversation-inline-code '((t :inherit (fixed-pitch font-lock-constant-face)))
  "Face of code within a line.")

(defface contexture-conversation-markup '((t :inherit shadow))
  "Face of fences, rules and other markup.")

(defface contexture-conversation-quote '((t :inherit (italic shadow)))
  "Face of quoted lines.")

(defconst contexture-markdown--longest 2000
  "Number of characters after which a line is broken at the next space.
After twice as many it is broken anywhere.")

(defconst contexture-markdown--largest-code 200000
  "Number of characters of a code block after which its faces are left out.")

(defconst contexture-markdown--code-at-once 1000
  "Number of characters of code that get their faces before the time is checked.")

(defconst contexture-markdown--most-links 100
  "Number of names in a line that may become links.  Each is looked for.")

(defconst contexture-markdown--largest-table 3000
  "Number of rows and bars in all above which a table is not aligned.")

(defconst contexture-markdown--fence "[ \t]*\\(```+\\|~~~+\\)"
  "Regexp for the beginning of a line that begins a block of code.")

(defconst contexture-markdown--widest-table 200
  "Number of columns from which on a table that no window shows is not aligned.")

(defconst contexture-markdown--row "[ \t]*|.*|[ \t]*$"
  "Regexp for a row of a table.")

(defconst contexture-markdown--rule "[ \t]*|[ \t]*:?-[-:| \t]*|[ \t]*$"
  "Regexp for the row of dashes below the head of a table.")

(defconst contexture-markdown--spans
  '(("`" "`\\([^`\n]+\\)`" contexture-conversation-inline-code)
    ("**" "\\*\\*\\([^ *\n][^*\n]*\\)\\*\\*" bold)
    ("__" "\\_<__\\([^ _\n][^_\n]*\\)__\\_>" bold)
    ("*" "\\(?:^\\|[^*]\\)\\*\\([^ *\n][^*\n]*\\)\\*" italic)
    ("_" "\\_<_\\([^ _\n][^_\n]*\\)_\\_>" italic)
    ("~~" "~~\\([^ ~\n][^~\n]*\\)~~" (:strike-through t)))
  "Kinds of markup within lines, each as (MARK REGEXP FACE).
Group 1 of REGEXP gets FACE.  Only lines that contain MARK are searched for
REGEXP, since that takes longer.")

(cl-defstruct (contexture-conversation--block (:constructor contexture-conversation--make-block)
                                              (:copier nil))
  "A block of code, stored as the text property `contexture-block' of the code.
MARK is its opening fence, INDENT the indentation of the fence, LANGUAGE the
word after the fence, and MODE the major mode for LANGUAGE, or nil.  It has
no markers, since each marker slows down all insertions."
  mark indent language mode)

(cl-defstruct (contexture-markdown--state
               (:constructor contexture-markdown--make-state)
               (:copier nil))
  "State of a Markdown text that is being inserted piece by piece.
DONE is a marker at the first line that is not finally drawn; COLUMN is the
length of the last line; OPEN is the code block that the text is in, or nil;
CODE-AT is non-nil once the hidden buffer has code of that block;
PROPERTIES are text properties for the whole text."
  done (column 0) open code-at properties)

;;;; Inserting

(defun contexture-markdown--begin (properties)
  "Return the state of a new Markdown text at point with text PROPERTIES."
  (contexture-markdown--make-state :done (copy-marker (point))
                                                :properties properties))

(defun contexture-markdown--insert (state text)
  "Insert TEXT, the next piece of STATE's text, at point, and draw it."
  (contexture-markdown--insert-broken state text)
  (let ((end (point)))
    (contexture-markdown--draw-lines state end)
    (let ((beg (marker-position (contexture-markdown--state-done state))))
      (when (< beg end (+ beg contexture-markdown--longest))
        (remove-list-of-text-properties beg end contexture-markdown--looks)
        (if-let* ((block (contexture-markdown--state-open state)))
            (add-text-properties beg end (list 'face 'contexture-conversation-code
                                               'contexture-block block))
          (unless (contexture-markdown--fence-p beg end)
            (contexture-markdown--draw-prose beg end)))))
    (goto-char end)))

(defun contexture-markdown--end (state)
  "Draw the rest of STATE's text, which ends at point."
  (let ((end (point)))
    (when (< (contexture-markdown--state-done state) end)
      (contexture-markdown--draw-line
       state (marker-position (contexture-markdown--state-done state)) end))
    (set-marker (contexture-markdown--state-done state) nil)
    (contexture-markdown--align-table end)
    (goto-char end)))

(defun contexture-markdown--insert-broken (state text)
  "Insert TEXT, the next piece of STATE's text, breaking long lines."
  ;; At once, as far as no line is long: each insertion is a stretch of
  ;; text with properties of its own for good.
  (let ((start (point)) (inserted 0) (from 0) newline
        (longest (if (string-match-p contexture--right-to-left text)
                     contexture--longest-turned-line
                   contexture-markdown--longest)))
    (while from
      (setq newline (string-search "\n" text from))
      (let ((column (+ (contexture-markdown--state-column state)
                       (- (or newline (length text)) from))))
        (if (<= column longest)
            (setf (contexture-markdown--state-column state) column)
          (insert (substring text inserted from))
          (contexture-markdown--insert-piece state (substring text from newline) longest)
          (setq inserted newline)))
      (when newline
        (setf (contexture-markdown--state-column state) 0))
      (setq from (and newline (1+ newline))))
    (when inserted
      (insert (substring text inserted)))
    (add-text-properties start (point) (contexture-markdown--state-properties state))
    (contexture--show-hidden (max (point-min) (1- start)) (point))))

(defun contexture-markdown--insert-piece (state piece longest)
  "Insert PIECE, which is within one line of STATE's text.
Break the line where it is longer than LONGEST."
  (let* ((column (contexture-markdown--state-column state))
         (from (point))
         (end (+ from (length piece))))
    (insert piece)
    (while (and (> (+ column (- end from)) longest)
                (< (goto-char (contexture-markdown--break from end column longest)) (1- end)))
      (insert (propertize "\n" 'contexture-break t))
      (cl-incf end)
      (setq column 0 from (point)))
    (goto-char end)
    (setf (contexture-markdown--state-column state)
          (+ column (- end from)))))

(defun contexture-markdown--break (from end column longest)
  "Return the position after FROM at which to break the text that ends at END.
FROM is at COLUMN of its line, and LONGEST is the number of characters after
which to break it.  Return END if the line need not be broken yet.  Look no
further than where the line must be broken: it may have no end."
  (let ((latest (min end (+ from (max 1 (- (* 2 longest) column))))))
    (goto-char (min end (+ from (max 0 (- longest column)))))
    (skip-chars-forward "^ \t" latest)
    (min latest (1+ (point)))))

(defun contexture-markdown--text (beg end)
  "Return the original text from BEG to END, without the line breaks added here."
  (let ((pieces nil) (position beg))
    (while (< position end)
      (let ((next (next-single-char-property-change position 'contexture-break nil end)))
        (unless (get-text-property position 'contexture-break)
          (push (buffer-substring-no-properties position next) pieces))
        (setq position next)))
    (apply #'concat (nreverse pieces))))

;;;; Lines

(defun contexture-markdown--draw-lines (state end &optional limit)
  "Draw the complete lines of STATE's text that are not drawn yet, up to END.
Once `float-time' has reached LIMIT, stop and return nil."
  (let ((done (contexture-markdown--state-done state)) (in-time t) code eol)
    (goto-char done)
    (while (and (setq in-time (or (null limit) (< (float-time) limit)))
                (search-forward "\n" end t))
      (setq eol (1- (point)))
      (let ((beg (marker-position done)))
        (set-marker done (point))
        (if (and (contexture-markdown--state-open state)
                 (not (contexture-markdown--closing-p state beg eol)))
            (progn
              (unless code (setq code beg))
              (when (> (- eol code) contexture-markdown--code-at-once)
                (contexture-markdown--draw-code state code (1+ eol))
                (setq code nil)))
          (when code
            (contexture-markdown--draw-code state code beg)
            (setq code nil))
          (contexture-markdown--draw-line state beg eol)))
      (goto-char done))
    (when code (contexture-markdown--draw-code state code (point)))
    in-time))

(defun contexture-markdown--draw-line (state beg end)
  "Draw the line from BEG to END of STATE's text for good."
  (remove-list-of-text-properties beg end (cons 'contexture-block
                                                contexture-markdown--looks))
  (cond ((contexture-markdown--state-open state)
         (if (contexture-markdown--closing-p state beg end)
             (contexture-markdown--close state beg end)
           (contexture-markdown--draw-code state beg end)))
        ((contexture-markdown--fence-p beg end)
         (let ((language (downcase (match-string-no-properties 2))))
           (setf (contexture-markdown--state-open state)
                 (contexture-conversation--make-block
                  :mark (match-string-no-properties 1)
                  :indent (- (match-beginning 1) beg)
                  :language language
                  :mode (contexture-markdown--mode language))
                 (contexture-markdown--state-code-at state) nil)
           (put-text-property beg end 'face 'contexture-conversation-markup))
         (contexture-markdown--align-table beg))
        (t (contexture-markdown--draw-prose beg end)
           (goto-char beg)
           (unless (looking-at-p contexture-markdown--row)
             (contexture-markdown--align-table beg)))))

(defun contexture-markdown--fence-p (beg end)
  "Return non-nil if the line from BEG to END opens a code block.
Then group 1 of the match is the fence, and group 2 the language.  One regexp
for all of the line would take time that grows with the cube of its length."
  (goto-char beg)
  (when (looking-at contexture-markdown--fence)
    (let ((fence (list (match-beginning 1) (goto-char (match-end 1)))))
      (skip-chars-forward " \t" end)
      (let ((language (list (point) (progn (skip-chars-forward "^ \t`\n" end) (point)))))
        (skip-chars-forward "^`\n" end)
        (when (= (point) end)
          (set-match-data `(,beg ,end ,@fence ,@language))
          t)))))

(defun contexture-markdown--closing-p (state beg end)
  "Return non-nil if the line from BEG to END closes the code block of STATE."
  (goto-char beg)
  (skip-chars-forward " \t" end)
  (let* ((mark (contexture-conversation--block-mark (contexture-markdown--state-open state)))
         (from (point)))
    (skip-chars-forward (substring mark 0 1) end)
    (and (>= (- (point) from) (length mark))
         (progn (skip-chars-forward " \t" end) (= (point) end)))))

;;;; Blocks of code

(defun contexture-markdown--close (state beg end)
  "Make STATE leave its code block, whose closing fence is from BEG to END."
  (setf (contexture-markdown--state-open state) nil)
  (put-text-property beg end 'face 'contexture-conversation-markup))

(defun contexture-markdown--mode (language)
  "Return the major mode for LANGUAGE, the word after a code fence, or nil.
It is one of `contexture-conversation-languages' or of
`contexture--code-modes': a model must not choose an arbitrary function to
call.  The mode's replacement in `major-mode-remap-alist' comes first, and its
tree-sitter variant last."
  (let* ((mode (or (cdr (assoc language contexture-conversation-languages))
                   (intern-soft (concat language "-mode"))))
         (known (and mode
                     (not (string-empty-p language))
                     (or (rassq mode contexture-conversation-languages)
                         (memq mode contexture--code-modes)))))
    (when known
      (cl-find-if #'fboundp
                  (list (alist-get mode (bound-and-true-p major-mode-remap-alist))
                        mode
                        (let ((name
                               (string-remove-suffix "-mode"
                                                     (symbol-name mode))))
                          (and (fboundp 'treesit-ready-p)
                               (treesit-ready-p (intern name) t)
                               (intern-soft (concat name "-ts-mode")))))))))

(defun contexture-markdown--draw-code (state beg end)
  "Draw the code from BEG to END, which belongs to the open block of STATE."
  (let ((block (contexture-markdown--state-open state)))
    (remove-list-of-text-properties beg end contexture-markdown--looks)
    (add-text-properties beg end (list 'face 'contexture-conversation-code
                                       'contexture-block block))
    (when (contexture-conversation--block-mode block)
      (condition-case nil
          (contexture--inertly
            (contexture-markdown--highlight state block beg end))
        (error (setf (contexture-conversation--block-mode block) nil))))))

(defun contexture-markdown--highlight (state block beg end)
  "Fontify the code from BEG to END, part of STATE's BLOCK, by BLOCK's mode."
  (let ((target (current-buffer))
        (hidden (contexture-markdown--hidden-buffer
                 (contexture-conversation--block-mode block)
                 (null (contexture-markdown--state-code-at state)))))
    (with-current-buffer hidden
      (let ((at (point-max)) (inhibit-message t) (message-log-max nil))
        (when (< at contexture-markdown--largest-code)
          (goto-char at)
          (contexture--insert-code (with-current-buffer target
                                     (buffer-substring-no-properties beg end)))
          (setf (contexture-markdown--state-code-at state) (point))
          (unless (contexture--draw-code at (point))
            (setf (contexture-conversation--block-mode block) nil))
          (let ((to beg)
                (position at) (end (point-max)))
            (while (< position end)
              (let ((next (next-single-property-change position 'face nil end))
                    (face (get-text-property position 'face)))
                (when face
                  (let ((beg (+ to (- position at))) (end (+ to (- next at))))
                    (with-current-buffer target
                      (put-text-property beg end 'face
                                         (contexture-markdown--code-face
                                          face)))))
                (setq position next)))))))))

(defun contexture-markdown--hidden-buffer (mode new)
  "Return the hidden buffer that fontifies code by MODE; empty it if NEW."
  (let* ((name (format " *contexture code: %s*" mode))
         (buffer (get-buffer name)))
    (unless (and buffer (eq (buffer-local-value 'major-mode buffer) mode))
      (setq buffer (get-buffer-create name))
      (with-current-buffer buffer
        (buffer-disable-undo)
        ;; Nobody looks at this buffer, so users' hooks are of no use there.
        (let ((inhibit-message t)) (contexture--enter-mode mode))
        (setq buffer-read-only nil)
        (font-lock-set-defaults)))
    (when new
      (with-current-buffer buffer (erase-buffer)))
    buffer))

(defvar contexture-markdown--code-faces nil
  "Alist from a face to the list of that face and `contexture-conversation-code'.
All texts share these lists, to save memory.")

(defun contexture-markdown--code-face (face)
  "Return FACE, a value of the property `face', before that of code.
So FACE takes precedence over `contexture-conversation-code'."
  (or (cdr (assoc face contexture-markdown--code-faces))
      (let ((above (append (ensure-list face) '(contexture-conversation-code))))
        (when (symbolp face)
          (push (cons face above) contexture-markdown--code-faces))
        above)))

(defun contexture-markdown--block-text (position)
  "Return the code of the block at POSITION, unindented as far as its fence is."
  (let* ((block (get-text-property position 'contexture-block))
         (end (next-single-property-change position 'contexture-block nil (point-max)))
         (beg (previous-single-property-change end 'contexture-block nil (point-min)))
         (text (contexture-markdown--text beg end))
         (indent (contexture-conversation--block-indent block)))
    (if (= indent 0) text
      (contexture--edited
       text (lambda ()
              (while (not (eobp))
                (delete-region (point) (progn (skip-chars-forward " \t" (+ (point) indent))
                                              (point)))
                (forward-line)))))))

;;;; Prose

(defun contexture-markdown--draw-prose (beg end)
  "Draw the line from BEG to END, which is not code."
  (unless (> (- end beg) (* 2 contexture-markdown--longest))
    (goto-char beg)
    (contexture-markdown--draw-kind beg end)
    (pcase-dolist (`(,mark ,regexp ,face) contexture-markdown--spans)
      (goto-char beg)
      (when (search-forward mark end t)
        (contexture-markdown--each regexp beg end face)))
    (goto-char beg)
    (cl-loop
      repeat contexture-markdown--most-links
      while (re-search-forward "`\\([^` \n]*[./][^` \n]*\\)`" end t) do
      (let ((target (match-string-no-properties 1)))
        (when (save-match-data (contexture-markdown--place target))
          (contexture-markdown--link (match-beginning 1) (match-end 1) target))))
    (goto-char beg)
    (when (search-forward "](" end t)
      (goto-char beg)
      (while (re-search-forward "\\[\\([^]\n]+\\)\\](\\([^) \n]+\\))" end t)
        (unless (contexture-markdown--code-p (match-beginning 0))
          (contexture-markdown--hide (match-beginning 0) (match-beginning 1))
          (contexture-markdown--hide (match-end 1) (match-end 0))
          (contexture-markdown--link (match-beginning 1) (match-end 1)
                                                  (match-string-no-properties 2)))))))

(defun contexture-markdown--draw-kind (beg end)
  "Draw the line from BEG to END as a heading, a list entry or a quote."
  (cond ((looking-at "#\\{1,6\\}[ \t]+")
         (contexture-markdown--hide beg (min end (match-end 0)))
         (put-text-property (min end (match-end 0)) end 'face 'contexture-conversation-heading))
        ((looking-at "[ \t]*\\(?:---+\\|\\*\\*\\*+\\|___+\\)[ \t]*$")
         (put-text-property beg end 'face 'contexture-conversation-markup))
        ((looking-at "[ \t]*\\([-*+]\\)[ \t]+")
         (put-text-property (match-beginning 1) (match-end 1) 'display "\u2022")
         (contexture-markdown--indent beg end (match-end 0)))
        ((looking-at "[ \t]*\\([0-9]+[.)]\\)[ \t]+")
         (put-text-property (match-beginning 1) (match-end 1) 'face 'bold)
         (contexture-markdown--indent beg end (match-end 0)))
        ((looking-at "[ \t]*\\(?:>[ \t]?\\)+")
         (put-text-property beg end 'face 'contexture-conversation-quote)
         (contexture-markdown--indent beg end (match-end 0)))))

(defconst contexture-markdown--indents
  (vconcat (mapcar (lambda (width) (make-string width ?\s)) (number-sequence 0 40)))
  "Vector of strings of 0 to 40 spaces, which all lines share to save memory.")

(defun contexture-markdown--indent (beg end to)
  "Indent the continuation lines of the line from BEG to END as far as TO."
  (put-text-property beg end 'wrap-prefix
                     (aref contexture-markdown--indents (min 40 (- to beg)))))

(defun contexture-markdown--hide (beg end)
  "Let `contexture-conversation-hide-markup' hide the markup from BEG to END."
  (add-text-properties beg end '(face contexture-conversation-markup
                                      invisible contexture-markup)))

(defvar contexture-conversation-link-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-conversation-follow-link)
    (define-key map [mouse-2] #'contexture-conversation-follow-link)
    map)
  "Keymap of links in answers.")

(defun contexture-markdown--link (beg end target)
  "Make the text from BEG to END a link to TARGET."
  (add-face-text-property beg end 'link)
  (add-text-properties beg end (list 'contexture-link target 'mouse-face 'highlight
                                     'help-echo (contexture--help target)
                                     'follow-link t
                                     'keymap contexture-conversation-link-map)))

(defun contexture-markdown--each (regexp beg end face)
  "Set FACE on group 1 of each match of REGEXP between BEG and END.
Hide the markup around the group.  Skip a match that is code in a line."
  (goto-char beg)
  (while (re-search-forward regexp end t)
    (let ((from (match-beginning 1)) (to (match-end 1)) (after (match-end 0)))
      (unless (contexture-markdown--code-p from)
        (let ((width (- after to)))
          (contexture-markdown--hide (- from width) from)
          (contexture-markdown--hide to after)
          (add-face-text-property from to face)))
      (goto-char after))))

(defun contexture-markdown--code-p (position)
  "Return non-nil if the text at POSITION is code within a line."
  (let ((face (get-text-property position 'face)))
    (or (eq face 'contexture-conversation-inline-code)
        (and (consp face) (memq 'contexture-conversation-inline-code face)))))

;;;; Tables

;; A table is aligned once its last row is there.  Its text stays as it is:
;; each bar is displayed with the blanks that its column needs.

(defun contexture-markdown--align-table (end)
  "Align the table that ends at END, or with the line before it, if there is one."
  (goto-char end)
  (when (bolp) (forward-line -1))
  (let ((left contexture-markdown--largest-table) rows)
    (while (and (progn (forward-line 0) (looking-at-p contexture-markdown--row))
                (> left 0)
                (not (get-text-property (point) 'contexture-block))
                (push (save-excursion
                        (let ((eol (line-end-position)) bars)
                          (while (search-forward "|" eol t)
                            (unless (eq (char-before (1- (point))) ?\\)
                              (push (1- (point)) bars)))
                          (cl-decf left (1+ (length bars)))
                          (nreverse bars)))
                      rows)
                (zerop (forward-line -1))))
    (when (and (cdr rows) (>= left 0)
               (progn (goto-char (caadr rows))
                      (forward-line 0)
                      (looking-at-p contexture-markdown--rule)))
      (contexture-markdown--align-rows rows))))

(defun contexture-markdown--width (beg end)
  "Return the number of columns that the visible text from BEG to END takes."
  (let ((width 0))
    (while (< beg end)
      (let ((next (next-single-property-change beg 'invisible nil end)))
        (unless (invisible-p beg)
          (cl-incf width (string-width (buffer-substring-no-properties beg next))))
        (setq beg next)))
    width))

(defun contexture-markdown--align-rows (rows)
  "Align the columns of a table, unless it is wider than the window.
ROWS has, for each row, the list of the positions of its bars.  The second
row is the row of dashes."
  (let* ((texts (append (list (car rows)) (cddr rows)))
         (cells (lambda (bars) (cl-mapcar (lambda (beg end)
                                            (contexture-markdown--width (1+ beg) end))
                                          bars (cdr bars))))
         (widths (mapcar cells texts))
         (columns (cl-loop for column below (apply #'max (mapcar #'length widths))
                           collect (apply #'max 1 (mapcar (lambda (row) (or (nth column row) 0))
                                                          widths))))
         (sides (cl-mapcar (lambda (beg end)
                             (pcase (contexture--trim (buffer-substring-no-properties (1+ beg) end))
                               ((rx bos ":" (* nonl) ":" eos) 0.5)
                               ((rx ":" eos) 1)
                               (_ 0)))
                           (cadr rows) (cdadr rows)))
         (window (get-buffer-window nil t)))
    (when (< (apply #'+ (length columns) columns)
             (if window (window-max-chars-per-line window) contexture-markdown--widest-table))
      (cl-loop for bars in texts
               for row in widths
               do (contexture-markdown--pad bars row columns sides))
      (cl-loop for (beg end) on (cadr rows)
               for width in columns
               while end
               do (put-text-property (1+ beg) end 'display (make-string width ?-))))))

(defvar contexture-markdown--bars (make-hash-table :test #'equal)
  "Hash table from numbers of blanks to bars between as many.
All tables share them, to save memory.")

(defun contexture-markdown--bar (after before position)
  "Return a bar behind AFTER blanks and in front of BEFORE blanks.
It is for POSITION: Emacs would display the same string once for two
characters beside each other."
  (let ((key (list after before (cl-evenp position))))
    (or (gethash key contexture-markdown--bars)
        (puthash key (concat (make-string after ?\s) "|" (make-string before ?\s))
                 contexture-markdown--bars))))

(defun contexture-markdown--pad (bars row columns sides)
  "Display the bars at BARS with the blanks that the cells between them lack.
ROW is the list of the widths of the cells, COLUMNS that of the columns.
SIDES is, for each column, the share of the blanks that goes before a cell,
from 0 to 1."
  (let ((after 0))
    (while bars
      (let* ((blanks (if row (- (car columns) (car row)) 0))
             (before (truncate (* blanks (or (car sides) 0)))))
        (put-text-property (car bars) (1+ (car bars)) 'display
                           (contexture-markdown--bar after before (car bars)))
        (setq after (- blanks before)
              bars (cdr bars) row (cdr row) columns (cdr columns) sides (cdr sides))))))

;;;; Following links

(defun contexture-markdown--place (target)
  "Return (FILE . LINE) for TARGET, such as \"src/main.rs:12\".
LINE is nil if TARGET names none.  Return nil if there is no such file, or
if it would be on another machine."
  (when (string-match "\\`\\(?:file://\\)?\\(.+?\\)\\(?:\\(?::\\|#L\\)\\([0-9]+\\)[-:0-9L]*\\)?\\'" target)
    (let ((name (match-string 1 target))
          (line (match-string 2 target)))
      (when-let* ((file (contexture--outside-file name)))
        (and (file-regular-p file)
             (cons file (and line (string-to-number line))))))))

(defun contexture-conversation-follow-link (&optional event)
  "Follow the link at point, or at EVENT if that is a click.
The link is to a file, perhaps at a line, or to a web page."
  (interactive (list last-input-event))
  (when (mouse-event-p event)
    (mouse-set-point event))
  (let* ((target (or (get-text-property (point) 'contexture-link)
                     (user-error "There is no link here")))
         (place (contexture-markdown--place target)))
    (cond (place
           (find-file-other-window (car place))
           (when (cdr place)
             (widen)
             (goto-char (point-min))
             (forward-line (1- (cdr place)))))
          ((string-match-p "\\`\\(?:https?://\\|mailto:\\)" target)
           ;; Of a mail, a link names only to whom: it could attach files to it.
           (browse-url (if (string-prefix-p "mailto:" target)
                           (substring target 0 (string-search "?" target))
                         target)))
          (t (contexture--user-error "There is no file %s in %s" target
                                     (contexture--abbreviate default-directory))))))

;;; What a conversation looks like

;; The buffer of a conversation, from top to bottom: the messages,
;; which cannot be edited; a line with the items of the context and their
;; tokens; and the prompt with the user's text.  Insertions above the
;; prompt leave point, the text at the prompt and its undo as they are.

(defface contexture-conversation-user '((t :inherit (bold font-lock-keyword-face)))
  "Face of the line above your messages."
  :group 'contexture-conversation)

(defface contexture-conversation-model '((t :inherit (bold font-lock-type-face)))
  "Face of the line above a model's messages."
  :group 'contexture-conversation)

(defface contexture-conversation-note '((t :inherit shadow))
  "Face of remarks, such as the cost of an answer."
  :group 'contexture-conversation)

(defface contexture-conversation-error '((t :inherit error))
  "Face of error messages in a conversation."
  :group 'contexture-conversation)

(defface contexture-conversation-reasoning '((t :inherit (italic shadow)))
  "Face of a model's reasoning before its answer."
  :group 'contexture-conversation)

(defface contexture-conversation-context '((t :inherit shadow))
  "Face of the line above the prompt, with the items of the context."
  :group 'contexture-conversation)

(defface contexture-conversation-prompt '((t :inherit minibuffer-prompt))
  "Face of the prompt of a conversation."
  :group 'contexture-conversation)

(defconst contexture-conversation--prompt "> "
  "Prompt of a conversation.")

(cl-defstruct (contexture-conversation--message (:constructor contexture-conversation--make-message)
                                                (:copier nil))
  "A message that is shown.
ID is the server's id of it, or nil while that is unknown; ROLE is a keyword
such as `:user', and TEXT the message's text.  FROM is a marker where its
heading begins.  CHECKPOINT is the id of the checkpoint taken just before a
question, or nil; ORIGIN says where the code in a question came from, or is
nil."
  id role text from checkpoint origin)

(cl-defstruct (contexture-conversation--origin (:constructor contexture-conversation--make-origin)
                                               (:copier nil))
  "Origin of the code in a question.
The code is between the markers BEG and END in BUFFER, which visited FILE;
TEXT is the code as it was when it was asked about.  NAME says in a few
words what is asked, and names a new conversation.  WATCH, if non-nil, is
called with the answer so far and with `more', `done' or `failed'."
  buffer beg end file text name watch)

(defvar-local contexture-conversation--session nil
  "The server's entry for the conversation of this buffer, a plist.")

(defvar-local contexture-conversation--loaded nil
  "Non-nil once the conversation's log was drawn in this buffer.")

(defvar-local contexture-conversation--once-loaded nil
  "Functions to call without arguments when the log is drawn, the last one first.")

(defvar-local contexture-conversation--messages nil
  "Messages that are shown, the newest first.")

(defvar-local contexture-conversation--tail nil
  "Marker at the end of the messages, above the line with the context.")

(defvar-local contexture-conversation--input nil
  "Marker at the start of the user's text, after the prompt.")

(defvar-local contexture-conversation--items nil
  "Items of this conversation's context, as last reported.")

(defvar-local contexture-conversation--stats nil
  "Last `session-report' for this conversation, or nil.")

(defvar-local contexture-conversation--answered-by nil
  "Model that answered last, or nil.")

(defvar-local contexture-conversation--providers nil
  "List of the server's providers, as last reported, or `none'.")

(defvar-local contexture-conversation--log-length 0
  "Number of messages in the conversation's log, as last reported.")

(defvar-local contexture-conversation--asking 0
  "Number of unanswered calls that ask for the length of the log after a turn.")

(defvar-local contexture-conversation--own-rollbacks 0
  "Number of rollbacks made in this buffer that the server has yet to announce.")

(defvar-local contexture-conversation--settings nil
  "Settings chosen in this buffer, a plist that is saved with the draft.
Its keys are :model, :provider, :template, :manage and :usage.")

(defvar-local contexture-conversation--tool-settings nil
  "Plist of :tools and :allowed-tools of the conversation, as last reported.")

(defvar-local contexture-conversation--approvals nil
  "Models' undecided requests for approval, the oldest first.")

(defvar-local contexture-conversation--turn nil
  "Turn of this buffer that is being answered, or nil.")

(defvar-local contexture-conversation--preparing nil
  "Turn that is being prepared, as (WHAT . QUESTION), or nil.
WHAT is a symbol that says what comes first, and QUESTION the text to ask.
If the value has changed when that is done, the turn was cancelled.")

(defvar-local contexture-conversation--drawing nil
  "States of the texts that are drawn in part.")

(defvar-local contexture-conversation--seen nil
  "Markers at texts that were seen and are to be drawn, the last one first.")

(defvar-local contexture-conversation--seen-timer nil
  "Timer that goes on with drawing `contexture-conversation--seen', or nil.")

(defconst contexture-conversation--draw-seconds 0.03
  "Number of seconds after which pieces of an answer that arrived are drawn.")

(defconst contexture-conversation--draw-at-once 0.01
  "Maximum number of seconds to draw before Emacs handles input.")

;;;; Changing what is above the prompt

(defun contexture-conversation--lay-out ()
  "Erase this buffer, and draw a conversation without messages in it."
  (let ((inhibit-read-only t) (buffer-undo-list t))
    (erase-buffer)
    (setq contexture-conversation--messages nil
          contexture-conversation--tail (copy-marker (point-min) t))
    (insert (apply #'propertize contexture-conversation--prompt
                   'face 'contexture-conversation-prompt
                   (contexture-conversation--fixed 'rear-nonsticky t 'field 'prompt)))
    (setq contexture-conversation--input (point-marker))
    (set-marker contexture-conversation--tail (point-min)))
  (contexture-conversation--draw-context))

;; Each stretch of text in one look has a list of its properties, and the
;; collector of garbage visits them all: what all texts have is a category.
(dolist (category '(contexture-conversation-fixed contexture-conversation-undrawn))
  (put category 'read-only t)
  (put category 'front-sticky '(read-only)))
(put 'contexture-conversation-fixed 'fontified t)

(defun contexture-conversation--fixed (&rest properties)
  "Return text PROPERTIES plus one that makes text read-only."
  `(category contexture-conversation-fixed ,@properties))

(defun contexture-conversation--change (function)
  "Call FUNCTION, which changes the text above the prompt; return its value.
Point stays in place.  The change is not recorded for undo, and what is
recorded stays valid."
  (let ((before (marker-position contexture-conversation--input)))
    (prog1 (let ((inhibit-read-only t)
                 (inhibit-modification-hooks t)
                 (buffer-undo-list t))
             (save-excursion
               (save-restriction (widen) (funcall function))))
      (let ((by (- (marker-position contexture-conversation--input) before)))
        (unless (or (= by 0) (eq buffer-undo-list t))
          (setq buffer-undo-list
                (mapcar (lambda (entry) (contexture-conversation--shift-entry entry by))
                        buffer-undo-list)))))))

(defmacro contexture-conversation--changing (&rest body)
  "Run BODY, which changes the text above the prompt.
See `contexture-conversation--change'."
  (declare (indent 0) (debug t))
  `(contexture-conversation--change (lambda () ,@body)))

(defun contexture-conversation--shift-entry (entry by)
  "Return ENTRY of an undo list with its positions increased by BY."
  (pcase entry
    ((pred integerp) (+ entry by))
    (`(,(and (pred integerp) beg) . ,(and (pred integerp) end))
     (cons (+ beg by) (+ end by)))
    (`(,(and (pred stringp) text) . ,(and (pred integerp) position))
     (cons text (if (< position 0) (- position by) (+ position by))))
    (`(nil ,property ,value ,beg . ,end)
     `(nil ,property ,value ,(+ beg by) . ,(+ end by)))
    (_ entry)))

(defun contexture-conversation--busy-p ()
  "Return non-nil if a turn of this buffer is being answered or prepared."
  (and (or contexture-conversation--turn contexture-conversation--preparing) t))

;;;; Messages

(defun contexture-conversation--add-message (role text heading &rest slots)
  "Draw TEXT, said by ROLE, as the last message, and return the message.
HEADING is the name of the model that said it, or nil for the one in use.
SLOTS are further slots of the message, keywords and values."
  (let ((message (apply #'contexture-conversation--begin-message role heading slots)))
    (contexture-conversation--add-text message text)
    message))

(defun contexture-conversation--add-text (message text)
  "Add TEXT below the heading of MESSAGE, which is the last message.
Its Markdown is drawn when the text is first seen."
  (setf (contexture-conversation--message-text message) text)
  (contexture-conversation--changing
    (goto-char contexture-conversation--tail)
    (contexture-conversation--end-line)
    (contexture-markdown--insert-broken
     (contexture-markdown--begin '(category contexture-conversation-undrawn)) text)
    (contexture-conversation--end-line)))

(defun contexture-conversation--undrawn-p (position)
  "Return non-nil if the Markdown of the text at POSITION is not drawn."
  (eq (get-text-property position 'category) 'contexture-conversation-undrawn))

(defun contexture-conversation--draw-seen (position)
  "Draw the Markdown of the text at POSITION, unless it is drawn.
Draw a part of a long text now, and the rest soon."
  (when (contexture-conversation--undrawn-p position)
    (push (copy-marker position) contexture-conversation--seen)
    (unless contexture-conversation--seen-timer
      (contexture-conversation--draw-more (current-buffer)))))

(defun contexture-conversation--draw-more (buffer)
  "Draw in BUFFER what was seen, for a moment, and go on soon."
  (contexture--with-live-buffer buffer
    (setq contexture-conversation--seen-timer nil)
    (let ((limit (+ (float-time) contexture-conversation--draw-at-once)))
      (while (and contexture-conversation--seen
                  (contexture-conversation--draw-to (car contexture-conversation--seen) limit))
        (set-marker (pop contexture-conversation--seen) nil)))
    (when contexture-conversation--seen
      (setq contexture-conversation--seen-timer
            (run-at-time contexture-conversation--draw-seconds nil
                         #'contexture-conversation--draw-more buffer)))))

(defun contexture-conversation--draw-to (position &optional limit)
  "Draw the text at POSITION, from where it is not drawn; return t when it is.
Once `float-time' has reached LIMIT, stop and return nil."
  (when (contexture-conversation--undrawn-p position)
    (contexture-conversation--changing
      (let* ((end (next-single-property-change position 'category nil (point-max)))
             (beg (previous-single-property-change end 'category nil (point-min)))
             (state (or (cl-find beg contexture-conversation--drawing
                                 :key #'contexture-markdown--state-done :test #'=)
                        (progn (goto-char beg) (contexture-markdown--begin nil)))))
        (setq contexture-conversation--drawing
              (cl-delete-if (lambda (it)
                              (or (eq it state)
                                  (not (contexture-conversation--undrawn-p
                                        (contexture-markdown--state-done it)))))
                            contexture-conversation--drawing))
        ;; Whatever fails is not drawn again.
        (put-text-property beg end 'category 'contexture-conversation-fixed)
        (if (contexture-markdown--draw-lines state end limit)
            (progn (goto-char end) (contexture-markdown--end state))
          (push state contexture-conversation--drawing)
          (put-text-property (contexture-markdown--state-done state) end
                             'category 'contexture-conversation-undrawn)))))
  (not (contexture-conversation--undrawn-p position)))

(defun contexture-conversation--draw-all (&rest _)
  "Draw the Markdown of all texts in this buffer that are not drawn yet."
  (let ((position (point-min)))
    (while (setq position (text-property-any position (point-max) 'category
                                             'contexture-conversation-undrawn))
      (contexture-conversation--draw-to position))))

(defun contexture-conversation--begin-message (role &optional heading &rest slots)
  "Draw the heading of a new message of ROLE, and return the message.
HEADING is the name of the model that says it, or nil for the one in use.
SLOTS are further slots of the message, keywords and values."
  (let ((message (apply #'contexture-conversation--make-message :role role slots))
        (name (pcase role
                (:user "You")
                (:assistant
                 (contexture--visible (or heading (contexture-conversation--model) "Model")))
                (:tool "Tool")
                (_ (capitalize (contexture--name role))))))
    (contexture-conversation--changing
      (when (get-text-property (point-min) 'contexture-intro)
        (delete-region (point-min)
                       (next-single-property-change (point-min) 'contexture-intro
                                                    nil contexture-conversation--tail)))
      (goto-char contexture-conversation--tail)
      (unless (bobp) (insert (apply #'propertize "\n" (contexture-conversation--fixed))))
      (setf (contexture-conversation--message-from message) (copy-marker (point)))
      (insert (apply #'propertize (concat name "\n")
                     'face (if (eq role :user) 'contexture-conversation-user
                             'contexture-conversation-model)
                     'contexture-heading t
                     (contexture-conversation--fixed))))
    (push message contexture-conversation--messages)
    message))

(defun contexture-conversation--end-line ()
  "Insert a newline unless point is at the beginning of a line."
  (unless (bolp) (insert (apply #'propertize "\n" (contexture-conversation--fixed)))))

(defun contexture-conversation--retitle (message name)
  "Change the heading of MESSAGE to NAME."
  (contexture-conversation--changing
    (goto-char (contexture-conversation--message-from message))
    (let ((properties (text-properties-at (point))))
      (forward-char)                    ; the marker stays before it
      (insert (apply #'propertize (contexture--visible name) properties))
      (delete-region (point) (line-end-position))
      (delete-region (contexture-conversation--message-from message)
                     (1+ (contexture-conversation--message-from message))))))

(defun contexture-conversation--note (text &optional face &rest properties)
  "Draw TEXT, a remark, at the end of the conversation.
FACE is its face, `contexture-conversation-note' by default, and PROPERTIES are
further text properties."
  (contexture-conversation--changing
    (goto-char contexture-conversation--tail)
    (contexture-conversation--end-line)
    (insert (apply #'propertize (concat (contexture--visible text t) "\n")
                   'face (or face 'contexture-conversation-note) 'wrap-prefix "  "
                   'contexture-note t
                   (apply #'contexture-conversation--fixed properties)))))

(defun contexture-conversation--delete-from (message)
  "Remove MESSAGE and everything after it from the buffer."
  (contexture-conversation--changing
    (delete-region (contexture-conversation--message-from message) contexture-conversation--tail)
    (goto-char contexture-conversation--tail)
    (when (and (eq (char-before) ?\n) (not (bobp)))
      (delete-char -1)))                ; the line before the heading
  (setq contexture-conversation--messages
        (cdr (memq message contexture-conversation--messages))))

(defun contexture-conversation--message-at (position)
  "Return the message at POSITION, or else the last one before it, or nil."
  (cl-find-if (lambda (message)
                (<= (contexture-conversation--message-from message) position))
              contexture-conversation--messages))

(defun contexture-conversation--last (role)
  "Return the last message of ROLE, or nil."
  (cl-find role contexture-conversation--messages :key #'contexture-conversation--message-role))

(defun contexture-conversation--number (id)
  "Return the position in the log, from 1, of the message ID, or nil.
Return nil if ID is nil or not the id of a message."
  (if (and id (string-match "\\`msg-\\([0-9]+\\)\\'" id))
      (string-to-number (match-string 1 id))))

(defun contexture-conversation--note-length (id)
  "Record that the log has the message ID; do nothing if ID is nil."
  (setq contexture-conversation--log-length (max contexture-conversation--log-length
                                                 (or (contexture-conversation--number id) 0))))

;;;; The line with the context

(defvar contexture-conversation-context-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-list)
    (define-key map [mouse-1] #'contexture-list)
    map)
  "Keymap of the line above the prompt, with the items of the context.")

(defun contexture-conversation--draw-context ()
  "Redraw the line above the prompt, with the items of the context."
  (contexture-conversation--changing
    (let ((start (marker-position contexture-conversation--tail))
          (text (contexture-conversation--context-text)))
      (delete-region start (- contexture-conversation--input (length contexture-conversation--prompt)))
      (goto-char start)
      (insert (apply #'propertize (concat (if (bobp) "" "\n") text "\n")
                     'contexture-context t
                     (contexture-conversation--fixed 'field 'prompt)))
      (set-marker contexture-conversation--tail start))))

(defun contexture-conversation--context-text ()
  "Return the text of the line above the prompt.
It says whose items are sent, and has these items with their tokens."
  (let* ((total (if contexture-conversation--items
                    (concat (contexture--size (length contexture-conversation--items)
                                              (contexture--tokens-to-send
                                               contexture-conversation--items))
                            (if (cl-some #'contexture-conversation--with-question-p
                                         contexture-conversation--items)
                                "; @ goes with this question only" ""))
                  "empty; /add adds to it, @ to one question"))
         (label (contexture-conversation--sources-label))
         (label (if (string-empty-p label) "" (concat label "  ")))
         (chips (contexture-conversation--chips (- (contexture-conversation--width) (length total)
                                                   (string-width label) 12))))
    (propertize (concat "Context: " label chips (if (string-empty-p chips) "" "  ") total)
                'face 'contexture-conversation-context
                'mouse-face 'highlight
                'help-echo "mouse-1, RET: list the items"
                'keymap contexture-conversation-context-map)))

(defun contexture-conversation--sources-label ()
  "Return a phrase for the contexts whose items this conversation sends.
The shared one and the conversation's own are left out."
  (let* ((own (plist-get contexture-conversation--session :manager))
         (others (remove contexture--shared (remove own (ensure-list contexture-context)))))
    (mapconcat #'contexture--label others " and ")))

(defun contexture-conversation--width ()
  "Return the width of a window that shows this buffer, or else 80.
Keep point in place: Emacs measures the width by selecting the window,
which moves point to that window's point."
  (if-let* ((window (get-buffer-window nil t)))
      (save-excursion (window-max-chars-per-line window))
    80))

;;;; What a window shows

(defun contexture-conversation--show-end ()
  "Scroll windows that show only the prompt, although they have room for more.
Such windows result from sending or deleting a long text at the prompt;
what is drawn above the prompt would not be visible in them."
  (dolist (window (get-buffer-window-list nil nil t))
    (when (> (window-start window) contexture-conversation--tail)
      (let ((start (save-excursion
                     (goto-char (point-max))
                     (vertical-motion (- 1 (window-body-height window)) window)
                     (point))))
        (when (< start (window-start window))
          (set-window-start window start t))))))

(defun contexture-conversation--chips (width)
  "Return the items of the context as text of at most WIDTH columns.
The text ends in the number of items that do not fit; it is empty if not
even the first one does."
  (let ((items contexture-conversation--items) (chips nil) (used 0) (more t))
    (while (and items more)
      (let ((chip (contexture-conversation--chip (car items) (- width 4))))
        (if (if chips (<= (+ used (length chip) 3) (- width 5))
              (<= (length chip) (- width 4)))
            (setq used (+ used (length chip) 3) items (cdr items)
                  chips (cons chip chips))
          (setq more nil))))
    (concat (mapconcat #'identity (reverse chips) " ")
            (if (and chips items) (format " +%d" (length items)) ""))))

(defun contexture-conversation--chip (item width)
  "Return the name of ITEM and its tokens, in brackets.
The name is cut to 30 columns, or to fewer, but not below 8, so that the text
fits into WIDTH columns."
  (let ((rest (format "%s %d]"
                      (pcase (plist-get item :state)
                        (:stale " changed") (:missing " gone") (_ ""))
                      (or (plist-get item :tokens) 0))))
    (concat "["
            (truncate-string-to-width
             (concat (if (contexture-conversation--with-question-p item) "@" "")
                     (contexture--visible (contexture-conversation--item-name item)))
             (max 8 (min 30 (- width (length rest) 1))) nil nil "...")
            rest)))

(defun contexture-conversation--item-name (item)
  "Return a short name for ITEM: its symbol, file, buffer or id."
  (let* ((metadata (plist-get item :metadata))
         (file (plist-get metadata :filename))
         (start (plist-get metadata :start-line)))
    (cond ((plist-get metadata :symbol))
          (file (concat (contexture--last-name file)
                        (if start (format ":%s" start) "")))
          ((plist-get metadata :buffer))
          (t (plist-get item :id)))))

;;;; The header line

(defun contexture-conversation--model-params ()
  "Return the parameters :model and :provider for this conversation, or nil.
They are what was chosen in this buffer, or else what `contexture-model' says."
  (let ((model (plist-get contexture-conversation--settings :model))
        (provider (plist-get contexture-conversation--settings :provider)))
    (cond ((or model provider)
           (contexture--plist :model model :provider provider))
          ((null contexture-model) nil)
          ((contexture-conversation--provider contexture-model)
           (list :provider contexture-model))
          (t (list :model contexture-model)))))

(defun contexture-conversation--model ()
  "Return the name of the model that would answer, or nil if it is not known."
  (or (pcase (contexture-conversation--model-params)
        (`(:model ,model . ,_) model)
        (`(:provider ,provider)
         (or (plist-get (contexture-conversation--provider provider) :model) provider)))
      contexture-conversation--answered-by
      (plist-get (or (cl-find-if (lambda (it) (plist-get it :default))
                                 (contexture-conversation--known-providers))
                     (car (contexture-conversation--known-providers)))
                 :model)
      (let ((model (plist-get contexture-conversation--stats :model)))
        (and model (not (equal model "default")) model))))

(defun contexture-conversation--provider (name)
  "Return the server's entry for the provider called NAME, or nil."
  (cl-find name (contexture-conversation--known-providers) :test #'equal
           :key (lambda (it) (plist-get it :name))))

(defun contexture-conversation--known-providers ()
  "Return the list of providers, as far as known."
  (and (listp contexture-conversation--providers) contexture-conversation--providers))

(defun contexture-conversation--draw-header ()
  "Set the header line: model, tools, notes, token count and conversation."
  (setq header-line-format
        (append
         (list " ")
         (when-let* ((model (or (contexture-conversation--model)
                                ;; Before the providers are known, it is not.
                                (and contexture-conversation--providers "no model chosen"))))
           (list (contexture-conversation--header-part
                  model 'contexture-conversation-switch-model "choose another model")
                 "  "))
         (contexture-conversation--header-tools)
         (when (plist-get contexture-conversation--settings :manage)
           (list (contexture-conversation--header-part
                  (format "notes: %s" (or (plist-get contexture-conversation--settings :template)
                                          "default kind"))
                  'contexture-conversation-toggle-notes
                  "turn notes off; mouse-3: choose a kind"
                  'contexture-conversation-choose-notes)
                 "  "))
         (when-let* ((id (plist-get contexture-conversation--session :id))
                     (words (contexture-count--compaction id)))
           (list (propertize (contexture-conversation--header-part
                              words 'contexture-explain "see what the last window left out")
                             'face 'warning)
                 "  "))
         ;; The count of what would be sent now.
         (list (contexture--header-text
                (contexture-count--text
                 (plist-get contexture-conversation--session :id)))
               "  "
               ;; In a narrow window, the name is cut; the mode line has it, too.
               (contexture-conversation--header-part
                (plist-get contexture-conversation--session :session)
                'contexture-conversation-switch "switch to another conversation"))))
  (force-mode-line-update))

(defun contexture-conversation--header-tools ()
  "Return the parts of the header line about tools, a list of strings."
  (append
   (when (plist-get contexture-conversation--tool-settings :tools)
     (list (contexture-conversation--header-part "tools" 'contexture-conversation-tools
                                                 "choose which tools models may use")
           "  "))
   (when contexture-conversation--approvals
     (list (propertize (contexture-conversation--header-part
                        (substitute-command-keys
                         "approve? \\<contexture-conversation-mode-map>\\[contexture-conversation-approve]")
                        'contexture-conversation-approve "decide on the model's request")
                       'face 'warning)
           "  "))))

(defun contexture-conversation--header-part (text command help &optional other)
  "Return TEXT for the header line; a click on it runs COMMAND, as HELP says.
OTHER, if given, is a command for a click with the third mouse button, which
is called with the event."
  (propertize (contexture--header-text (or text ""))
              'mouse-face 'mode-line-highlight
              'help-echo (concat "mouse-1: " help)
              'keymap (let ((map (make-sparse-keymap)))
                        (define-key map [header-line mouse-1]
                          (lambda (event)
                            (interactive "e")
                            (select-window (posn-window (event-start event)))
                            (call-interactively command)))
                        (when other (define-key map [header-line mouse-3] other))
                        map)))

(defun contexture-conversation--mode-line-state ()
  "Return the state of this buffer's turn for the mode line, or \"\".
It is \":approve?\" or \":answering\"."
  (cond (contexture-conversation--approvals ":approve?")
        (contexture-conversation--turn ":answering")
        (t "")))

(defun contexture-conversation--mode-line-count ()
  "Return the token count for the mode line, such as \" 1,234/8,192\", or \"\"."
  (if-let* ((short (contexture-count--short (plist-get contexture-conversation--session :id))))
      (concat " " short)
    ""))

(provide 'contexture-conversation-view)
;;; contexture-conversation-view.el ends here
