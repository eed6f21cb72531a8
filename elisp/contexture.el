;;; contexture.el --- Mark what a language model should see  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software: you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.
;;
;; This program is distributed in the hope that it will be useful, but
;; WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
;; General Public License for more details.
;;
;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; Contexture keeps what a language model needs to see: the regions,
;; definitions, buffers, files and symbols that you mark.  A small server
;; stores them for each project and renders them as Markdown.  They are
;; still there next week.
;;
;; Bind the commands to a prefix of your own and start marking:
;;
;;     (global-set-key (kbd "C-c x") 'contexture-command-map)
;;
;;     a  contexture-add-dwim         l  contexture-list
;;     r  contexture-add-region       p  contexture-preview
;;     d  contexture-add-defun        w  contexture-copy
;;     b  contexture-add-buffer       i  contexture-insert
;;     f  contexture-add-file         u  contexture-undo
;;     s  contexture-add-symbol       c  contexture-clear
;;     t  contexture-add-directory    x  contexture-remove
;;     P  contexture-add-project      q  contexture-cancel
;;     k  contexture-add-kill         S  contexture-save-set
;;     e  contexture-add-diagnostics  L  contexture-load-set
;;     v  contexture-add-diff         D  contexture-drop-set
;;     o  contexture-add-compilation  m  contexture-switch
;;     g  contexture-refresh          C  contexture-set-limit
;;     U  contexture-redo              Z  contexture-keep-copy
;;     n  the commands for conversations
;;     z  the commands for a Lisp that SLIME or SLY is connected to
;;     R  contexture-conversation             E  contexture-explain-code
;;     ?  contexture-menu, which shows all of this
;;
;; Only these commands add something.  Each says what it added, where to,
;; and the cost in tokens.  The text comes from the buffer, so it includes
;; unsaved edits.  `contexture-add-to' says where it goes: by default to the
;; project's context.  A buffer sends the items of that context, those of
;; its file alone, and those for everywhere.  Under narrowing, only the
;; visible text is taken, with its line numbers in the whole buffer.

;;; Code:

(require 'cl-lib)
(require 'contexture-generated)
(require 'subr-x)                       ; its functions are also passed on

(declare-function project-root "project" (project))
(defvar Info-additional-directory-list)
(declare-function jsonrpc-running-p "jsonrpc" (connection))
(autoload 'contexture-conversation-map "contexture-conversations" nil nil 'keymap)
(autoload 'contexture-lisp-map "contexture-lisp" nil nil 'keymap)

;;; Where the manual and the commands are, and their keys

(defun contexture--manual-folder (package)
  "Return the folder with the manual of the file PACKAGE, or nil.
`make install' and `make docs' put it where Info does not look by itself."
  (cl-find-if (lambda (folder)
                (file-readable-p (expand-file-name "contexture.info" folder)))
              (mapcar (lambda (name) (expand-file-name name (file-name-directory package)))
                      '("../../../info" "../build"))))

;; Then C-h F, C-h K and the links in C-h m find the manual, too.
(when-let* ((package (or load-file-name buffer-file-name))
            (folder (contexture--manual-folder package)))
  (setq Info-additional-directory-list
        (cons folder (bound-and-true-p Info-additional-directory-list))))

;; The autoloads are for users who load this file without a package's own.

(eval-and-compile
  (dolist (entry '(("contexture-sources"
                    contexture-add-dwim contexture-add-symbol
                    contexture-add-kill contexture-add-diff
                    contexture-add-diagnostics contexture-add-compilation
                    contexture-add-directory contexture-add-project contexture-cancel)
                   ("contexture-menu"
                    contexture-menu contexture-conversation-menu contexture-help)
                   ("contexture-agents"
                    contexture-send-to-agent contexture-agent-shell-mode)
                   ("contexture-conversations"
                    contexture-conversation-open contexture-conversation-new contexture-conversation-make-current
                    contexture-conversation-rename contexture-conversation-delete
                    contexture-conversation-bring-back contexture-conversation-add-message
                    contexture-conversation-add-region contexture-conversation-name-turn
                    contexture-conversation-go-back
                    contexture-conversation-fork contexture-conversation-leave-out
                    contexture-conversation-shorten contexture-conversation-undo
                    contexture-conversation-redo contexture-conversation-undo-to
                    contexture-conversation-set contexture-conversation-transcript
                    contexture-conversation-search contexture-conversation-export
                    contexture-import-sessions contexture-conversation-mode-line-mode
                    contexture-conversation-notes)
                   ("contexture-conversation-turn" contexture-conversation-branch)
                   ("contexture-sessions" contexture-sessions contexture-sync)
                   ("contexture-hub" contexture-hub)
                   ("contexture-dashboard"
                    contexture-dashboard contexture-dashboard-browse contexture-explain)
                   ("contexture-map" contexture-map contexture-add-map)
                   ("contexture-picture" contexture-picture-paste)
                   ("contexture-marks"
                    contexture-mode contexture-global-mode)
                   ("contexture-gptel"
                    contexture-gptel-mode contexture-import-gptel)
                   ("contexture-doctor"
                    contexture-configure-provider contexture-doctor contexture-info
                    contexture-install-server contexture-setup-agent
                    contexture-trust-project contexture-distrust-project)
                   ("contexture-rpc"
                    contexture-connect contexture-disconnect)
                   ("contexture-tools"
                    contexture-tools-on contexture-tools-off)
                   ("contexture-conversation"
                    contexture-conversation contexture-explain-code contexture-document-defun
                    contexture-fix-error contexture-review-code contexture-write-tests
                    contexture-send-region contexture-rewrite contexture-insert-last-response)
                   ("contexture-lisp"
                    contexture-lisp-add-symbol contexture-lisp-add-history
                    contexture-lisp-add-error contexture-lisp-add-inspector
                    contexture-lisp-add-note contexture-lisp-explain-error
                    contexture-slime-mode contexture-sly-mode)
                   ("contexture-mention"
                    contexture-mention-mode contexture-global-mention-mode)
                   ("contexture-list"
                    contexture-list contexture-preview contexture-remove
                    contexture-keep-copy contexture-clear contexture-undo
                    contexture-redo contexture-refresh contexture-set-limit
                    contexture-switch contexture-save-set contexture-load-set
                    contexture-drop-set contexture-ediff)))
    (dolist (command (cdr entry))
      (put command 'info-file "contexture") ; so C-h F and C-h K find the manual
      (autoload command (car entry) nil t)))
  ;; The first call loads jsonrpc.el, which takes longer than all the rest.
  (dolist (entry '(("contexture-rpc"
                    contexture-request contexture-request-async
                    contexture-request-batch contexture-request-batch-async
                    contexture-request-pages contexture-notify
                    contexture-current-connection
                    contexture--request-patiently contexture--subscribe
                    contexture--wait contexture--cancel contexture--make-request-key
                    contexture--server-command contexture--find-server)
                   ("contexture-marks"
                    contexture-live--added contexture-live--captured
                    contexture-live--connected contexture-live--edited-names
                    contexture-live--follow-copy contexture-live--held-p)
                   ("contexture-sources"
                    contexture-sources--block-selection
                    contexture-sources--capture-rectangle)
                   ("contexture-mention"
                    contexture-mention-at-point contexture-mention-in-string
                    contexture-mention--ask
                    contexture-mention--begin-meanings contexture-mention--look-up
                    contexture-mention--meanings contexture-mention--remarks)
                   ("contexture-code" contexture-defun-at-point contexture--next-place)
                   ("contexture-point"
                    contexture-point-call contexture-point-code contexture-point-numbered
                    contexture-point-subjects contexture-point-with
                    contexture-remark--places contexture-remark--watch)
                   ("contexture-lisp" contexture-lisp-connected-p)
                   ("contexture-conversations" contexture-embark--offer contexture-saved--branch)
                   ("contexture-tools"
                    contexture-define-tool contexture-tools--changed)))
    (dolist (function (cdr entry))
      (autoload function (car entry)))))

;;;; Keys

;;;###autoload (autoload 'contexture-command-map "contexture" nil nil 'keymap)
(defvar contexture-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "r" #'contexture-add-region)
    (define-key map "b" #'contexture-add-buffer)
    (define-key map "d" #'contexture-add-defun)
    (define-key map "f" #'contexture-add-file)
    (define-key map "s" #'contexture-add-symbol)
    (define-key map "c" #'contexture-clear)
    (define-key map "u" #'contexture-undo)
    (define-key map "U" #'contexture-redo)
    (define-key map "l" #'contexture-list)
    (define-key map "p" #'contexture-preview)
    (define-key map "w" #'contexture-copy)
    (define-key map "i" #'contexture-insert)
    (define-key map "a" #'contexture-add-dwim)
    (define-key map "t" #'contexture-add-directory)
    (define-key map "P" #'contexture-add-project)
    (define-key map "k" #'contexture-add-kill)
    (define-key map "e" #'contexture-add-diagnostics)
    (define-key map "v" #'contexture-add-diff)
    (define-key map "o" #'contexture-add-compilation)
    (define-key map "x" #'contexture-remove)
    (define-key map "Z" #'contexture-keep-copy)
    (define-key map "S" #'contexture-save-set)
    (define-key map "L" #'contexture-load-set)
    (define-key map "D" #'contexture-drop-set)
    (define-key map "m" #'contexture-switch)
    (define-key map "=" #'contexture-ediff)
    (define-key map "N" #'contexture-send-to-agent)
    (define-key map "q" #'contexture-cancel)
    (define-key map "g" #'contexture-refresh)
    (define-key map "C" #'contexture-set-limit)
    (define-key map "M" #'contexture-mode)
    (define-key map "R" #'contexture-conversation)
    (define-key map "E" #'contexture-explain-code)
    (define-key map "O" #'contexture-document-defun)
    (define-key map "F" #'contexture-fix-error)
    (define-key map "V" #'contexture-review-code)
    (define-key map "T" #'contexture-write-tests)
    (define-key map "A" #'contexture-send-region)
    (define-key map "W" #'contexture-rewrite)
    (define-key map "Y" #'contexture-insert-last-response)
    (define-key map "K" #'contexture-configure-provider)
    (define-key map "J" #'contexture-connect)
    (define-key map "Q" #'contexture-disconnect)
    (define-key map "I" #'contexture-info)
    (define-key map "H" #'contexture-doctor)
    (define-key map "h" #'contexture-help)
    (define-key map "n" 'contexture-conversation-map)
    (define-key map "z" 'contexture-lisp-map)
    (define-key map "?" #'contexture-menu)
    map)
  "Keymap of Contexture's commands, bound to no key.
Bind it to a prefix of your own:

    (global-set-key (kbd \"C-c x\") \\='contexture-command-map)")
(defalias 'contexture-command-map contexture-command-map)
(map-keymap (lambda (_event command) (put command 'info-file "contexture"))
            contexture-command-map)

;;; Show what hides in names

;; A name may contain invisible characters: controls, line ends, marks that
;; reverse the text after them, characters without width.  With them, one
;; file can look like another, and a model can ask for something else than
;; what you read.  Wherever the package shows a name, such characters become
;; escapes such as \u{202e}, in the server's form.  Where contents are
;; shown, they only look that way; the text stays as it is.
;;
;; `glyphless-display-mode' would show most of these characters, but
;; only in buffers, only where it is on, and the text would still be
;; reversed.

(defconst contexture-visible--ranges
  '(#xad #x34f #x61c (#x115f . #x1160) (#x17b4 . #x17b5) (#x180b . #x180f)
    (#x200b . #x200f) (#x2028 . #x202e) (#x2060 . #x206f) #x3164
    (#xfe00 . #xfe0f) #xfeff #xffa0 (#xfff0 . #xfffb) (#x1bca0 . #x1bca3)
    (#x1d173 . #x1d17a) (#xe0000 . #xe0fff))
  "Characters beyond ASCII that are invisible, and ranges of them.
Such are those with Default_Ignorable_Code_Point in Unicode's
DerivedCoreProperties.txt, the separators of lines and paragraphs, and
the marks of interlinear annotations.")

(defconst contexture-visible--ignorable
  (rx-to-string `(any ,@contexture-visible--ranges) t)
  "Regexp for one of `contexture-visible--ranges'.")

(defconst contexture-visible--candidate
  (concat "[^[:print:]]\\|" contexture-visible--ignorable)
  "Regexp for a character that may be invisible.")

(defconst contexture-visible--candidate-in-lines
  (concat "[^[:print:]\n\t]\\|" contexture-visible--ignorable)
  "Regexp for a character of a text with lines that may be invisible.")

(defconst contexture-visible--joining
  '((#x180b . #x180f) (#x200c . #x200d) (#xfe00 . #xfe0f) (#xe0100 . #xe01ef))
  "Ranges of characters that often change how ordinary text looks.
They stay in a text with very many of them.")

(defconst contexture-visible--cursive
  '(arabic syriac nko mandaic mongolian phags-pa manichaean adlam hanifi-rohingya)
  "Scripts whose letters are joined in writing.")

;;;; Characters

(defvar contexture-visible--known (make-hash-table)
  "Hash table from characters to t or `no', whether they are invisible.")

(defun contexture-visible--hidden-p (char)
  "Return non-nil if CHAR, by itself, is invisible.
Raw bytes are visible: Emacs shows them as escapes."
  (cond ((< char ?\s) t)
        ((< char #x7f) nil)
        ((< char #xa0) t)
        ((> char #x10ffff) nil)
        (t (eq t (or (gethash char contexture-visible--known)
                     (puthash char (if (contexture-visible--ignorable-p char) t 'no)
                              contexture-visible--known))))))

(defun contexture-visible--ignorable-p (char)
  "Return non-nil if CHAR, beyond Latin-1's controls, is invisible."
  (or (string-match-p contexture-visible--ignorable (char-to-string char))
      (eq (contexture-visible--category char) 'Cn)))

(defun contexture-visible--category (char)
  "Return the general category of CHAR in Unicode, a symbol such as `So'."
  (get-char-code-property char 'general-category))

(defun contexture-visible--escape (char &optional properties)
  "Return the escape for CHAR, with the text PROPERTIES."
  (apply #'propertize (pcase char
                        (?\n "\\n") (?\r "\\r") (?\t "\\t")
                        (_ (format "\\u{%x}" char)))
         'face 'escape-glyph properties))

(defun contexture-visible--picture-p (char)
  "Return non-nil if CHAR, a character or nil, can be part of an emoji."
  (and char (or (memq (contexture-visible--category char) '(So Sm))
                (<= #x1f3fb char #x1f3ff)
                (memq char '(#x203c #x2049 #x2139 #x3030)))))

(defun contexture-visible--script-p (char &rest scripts)
  "Return non-nil if CHAR, a character or nil, is of one of SCRIPTS."
  (and char (memq (aref char-script-table char) scripts)))

(defun contexture-visible--right-p (text index)
  "Return non-nil if the invisible character at INDEX in TEXT belongs there.
It belongs there if it changes how ordinary text looks: a joiner between
letters that join, a selector after a character with variants, or a part of
an emoji."
  (let ((char (aref text index))
        (base (and (> index 0) (aref text (1- index))))
        (next (and (< (1+ index) (length text)) (aref text (1+ index)))))
    (pcase char
      ((guard (null base)) nil)
      ((or #x200c #x200d)
       (or (eql 9 (get-char-code-property base 'canonical-combining-class))
           (if (eql char #x200c)
               (and (apply #'contexture-visible--script-p base contexture-visible--cursive)
                    (apply #'contexture-visible--script-p next contexture-visible--cursive))
             (and (or (contexture-visible--picture-p base)
                      (and (eql base #xfe0f) (> index 1)
                           (contexture-visible--picture-p (aref text (- index 2)))))
                  (contexture-visible--picture-p next)))))
      ((or #xfe0e #xfe0f) (or (contexture-visible--picture-p base)
                              (and (eql next #x20e3) (< base #x7f))))
      ((guard (<= #xe0100 char #xe01ef)) (contexture-visible--script-p base 'han 'cjk-misc))
      ((guard (<= #xe0000 char #xe00ff)) (contexture-visible--in-flag-p text index))
      ((guard (<= #xfe00 char #xfe0d))
       (or (contexture-visible--script-p base 'han 'cjk-misc)
           (eq (contexture-visible--category base) 'Sm)))
      ((guard (<= #x180b char #x180f))
       (and (contexture-visible--script-p base 'mongolian)
            (not (contexture-visible--hidden-p base)))))))

(defun contexture-visible--in-flag-p (text index)
  "Return non-nil if the tag character at INDEX in TEXT is part of a flag."
  (cl-some
   (lambda (letters)
     (let* ((tags (concat [#x1f3f4] (mapcar (lambda (it) (+ #xe0000 it)) letters)
                          [#xe007f]))
            (at (string-search tags text (max 0 (- index (length tags))))))
       (and at (< at index (+ at (length tags))))))
   '("gbeng" "gbsct" "gbwls")))

;;;; Texts

(defconst contexture-visible--most 1000
  "Number of hidden characters of a text that become escapes.
Emacs takes long to make more, which nobody would read.  Each further one
becomes a mark.")

(defconst contexture-visible--most-looked-at 10000
  "Number of characters of a text about which to find out whether they are hidden.")

(defun contexture--visible (text &optional lines)
  "Return TEXT, a string or nil, with escapes for its hidden characters.
Hidden are invisible characters that do not belong there.  With LINES
non-nil, line ends and tabs stay.  Beyond `contexture-visible--most' of them,
hidden characters become marks, also if they belong there."
  (let ((regexp (if (and text (multibyte-string-p text))
                    (if lines contexture-visible--candidate-in-lines contexture-visible--candidate)
                  (if lines "[^ -~\n\t]" "[^ -~]"))))
    (cond ((not (and text (string-match-p regexp text))) text)
          ((< (length text) contexture-visible--most)
           (contexture-visible--escaped text regexp))
          (t (contexture-visible--escaped-long text regexp lines)))))

(defun contexture-visible--escaped (text regexp)
  "Return the short TEXT with escapes as `contexture--visible' does.
REGEXP matches what may be hidden."
  (let ((start 0) (done 0) parts)
    (while (setq start (string-match regexp text start))
      (when (and (contexture-visible--hidden-p (aref text start))
                 (not (contexture-visible--right-p text start)))
        (push (substring text done start) parts)
        (push (contexture-visible--escape (aref text start)
                                          (text-properties-at start text))
              parts)
        (setq done (1+ start)))
      (setq start (1+ start)))
    (if (null parts) text
      (apply #'concat (nreverse (cons (substring text done) parts))))))

(defun contexture-visible--escaped-long (text regexp lines)
  "Return the long TEXT with escapes, as `contexture-visible--escaped' does.
REGEXP and LINES are as there."
  (with-temp-buffer
    ;; Emacs counts the characters of a string from its beginning.
    (insert text)
    (goto-char (point-min))
    (let ((done (point)) (escapes 0) (looks 0) parts)
      (while (and (< escapes contexture-visible--most)
                  (< looks contexture-visible--most-looked-at)
                  (re-search-forward regexp nil t))
        (cl-incf looks)
        (unless (contexture-visible--right-before-p)
          (cl-incf escapes)
          (push (buffer-substring done (1- (point))) parts)
          (push (contexture-visible--escape (char-before) (text-properties-at (1- (point))))
                parts)
          (setq done (point))))
      (when (or (= escapes contexture-visible--most)
                (= looks contexture-visible--most-looked-at))
        (contexture-visible--mark (point) lines))
      (if (and (null parts) (< looks contexture-visible--most-looked-at)) text
        (apply #'concat (nreverse (cons (buffer-substring done (point-max)) parts)))))))

(defun contexture-visible--right-before-p ()
  "Return non-nil if the character before point is visible, or belongs there."
  (let ((at (1- (point))))
    (or (not (contexture-visible--hidden-p (char-after at)))
        (let ((from (max (point-min) (- at 8))))
          (contexture-visible--right-p
           (buffer-substring-no-properties from (min (point-max) (+ at 8))) (- at from))))))

(defun contexture-visible--mark-of (char)
  "Return the mark for CHAR: it has as many bytes in Emacs, to be replaced fast."
  (cond ((< char #x80) ??) ((< char #x800) ?¿) ((< char #x10000) ?\ufffd) (t ?\U0001f6ab)))

(defun contexture-visible--mark (beg lines)
  "Replace the hidden characters from BEG on by marks.
With LINES non-nil, line ends and tabs stay."
  (let ((table (make-char-table 'translation-table))
        (inhibit-modification-hooks t))
    (dolist (range `((0 . 31) 127 (128 . 159) (#x40000 . #xdffff) ,@contexture-visible--ranges))
      (let ((range (if (consp range) range (cons range range))))
        (set-char-table-range table range (contexture-visible--mark-of (car range)))))
    (dolist (range contexture-visible--joining)
      (set-char-table-range table range nil))
    (when lines
      (aset table ?\n nil)
      (aset table ?\t nil))
    ;; Other characters that are not assigned are not known before.
    (goto-char beg)
    (cl-loop repeat (* 2 contexture-visible--most-looked-at)
             while (re-search-forward "[^[:print:]]" nil t)
             for char = (char-before)
             unless (or (aref table char) (memq char '(?\n ?\t))
                        (not (contexture-visible--hidden-p char)))
             do (aset table char (contexture-visible--mark-of char)))
    (translate-region beg (point-max) table)))

(defun contexture--help (text)
  "Return TEXT as it goes into a tooltip, with escapes for its hidden characters.
Emacs expands key descriptions and keymaps named in a tooltip, unless told
not to."
  (propertize (contexture--visible text) 'help-echo-inhibit-substitution t))

(defun contexture--header-text (text)
  "Return TEXT as a header or mode line needs it: percent signs are doubled.
A name such as %999999999b would fill Emacs's memory.  Hidden characters
become escapes."
  (string-replace "%" "%%" (contexture--visible text)))

(defun contexture--header-line (&rest texts)
  "Return a header line that shows TEXTS."
  (concat " " (contexture--header-text (apply #'concat texts))))

(defun contexture--visible-data (data)
  "Return DATA from the server with escapes in all its strings.
Use the result for display only; keep the data themselves."
  (cond ((stringp data) (contexture--visible data))
        ((consp data)
         (let (shown)
           (while (consp data)          ; a list may be long
             (push (contexture--visible-data (pop data)) shown))
           (nconc (nreverse shown) (contexture--visible-data data))))
        (t data)))

(defun contexture--cut (text width)
  "Return the beginning of TEXT, on one line, for about WIDTH columns.
Of a longer text, Emacs need not even look at the rest."
  (contexture--visible
   ;; Many characters can have no width.
   (truncate-string-to-width (substring text 0 (min (length text) (* 4 width)))
                             width nil nil t)))

(defun contexture--visible-candidate (name)
  "Return NAME, a completion candidate, such that it is displayed with escapes.
Its text stays the same, so that it still names the same thing."
  (if (equal name (contexture--visible name)) name
    (let ((shown (copy-sequence name)))
      (dotimes (index (length shown))
        (when (and (contexture-visible--hidden-p (aref name index))
                   (not (contexture-visible--right-p name index)))
          (put-text-property index (1+ index) 'display
                             (contexture-visible--escape (aref name index))
                             shown)))
      shown)))

(defconst contexture--longest-shown-line 4000
  "Maximum number of characters of a line that is shown whole.
Emacs takes long to display longer ones.")

(defconst contexture--right-to-left
  "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
  "Regexp for a character of a script that is written from right to left.")

(defconst contexture--longest-turned-line 250
  "Maximum number of characters of a line with text from right to left.
The time that Emacs takes to display such a line grows with the square of its
length: a window of lines of 1000 takes seconds.")

(defun contexture--shorten-lines (word &optional keep)
  "Replace the middle of each long line of this buffer with a note.
WORD says what happens to the middle, such as \"sent\".  Break lines with
text from right to left.  With KEEP non-nil, do so only on the screen, and
leave the text as it is; very long lines are then shown from left to right."
  (let ((shown (/ contexture--longest-shown-line 2)))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((hidden (- (line-end-position) (point) (* 2 shown))))
          (when (> hidden 0)
            (forward-char shown)
            (let ((note (apply #'propertize
                               (format "[… %s more characters of this line are %s …]"
                                       (contexture--number hidden) word)
                               'face 'shadow 'font-lock-face 'shadow
                               (text-properties-at (1- (point))))))
              (if keep
                  (put-text-property (point) (+ (point) hidden) 'display note)
                (delete-region (point) (+ (point) hidden))
                (insert note)))))
        (forward-line))
      (goto-char (point-min))
      (while (re-search-forward contexture--right-to-left nil t)
        (beginning-of-line)
        (if keep
            (when (< (* 4 contexture--longest-turned-line) (- (line-end-position) (point)))
              (setq-local bidi-display-reordering nil))
          (while (< contexture--longest-turned-line (- (line-end-position) (point)))
            (forward-char contexture--longest-turned-line)
            (skip-chars-backward "^ \t" (- (point) (/ contexture--longest-turned-line 2)))
            (insert (apply #'propertize "\n" (text-properties-at (1- (point)))))))
        (forward-line)))))

(defun contexture--hide-middles (beg)
  "Display a note in place of the middle of each long line from BEG to the end.
The text, which is to be sent, stays as it is.  Emacs takes long to display
such a line, and longer if it has text from right to left."
  (remove-overlays beg (point-max) 'contexture-middle t)
  (save-excursion
    (goto-char beg)
    (while (not (eobp))
      (let* ((from (point))
             (end (line-end-position))
             (shown (if (and (> (- end from) (* 4 contexture--longest-turned-line))
                             (re-search-forward contexture--right-to-left end t))
                        contexture--longest-turned-line
                      (/ contexture--longest-shown-line 2)))
             (hidden (- end from (* 2 shown))))
        (when (> hidden (* 2 shown))
          (let ((overlay (make-overlay (+ from shown) (- end shown) nil t)))
            (overlay-put overlay 'contexture-middle t)
            (overlay-put overlay 'evaporate t)
            (overlay-put overlay 'display
                         (propertize (format "[… %s more characters of this line are sent …]"
                                             (contexture--number hidden))
                                     'face 'shadow))))
        (goto-char end)
        (forward-line)))))

(defconst contexture--longest-asked-line 10000
  "Maximum number of characters of a line of a question.
Emacs takes long to display longer ones.")

(defun contexture--show-in-order ()
  "Display the text of this buffer, about which the user decides, as it is.
That is from left to right: in texts of some scripts, words would change
places.  Break very long lines, and indent their rest alike."
  (visual-line-mode 1)                  ; no line is cut
  (setq bidi-display-reordering nil)
  (save-excursion
    (goto-char (point-min))
    (while (not (eobp))
      (let ((from (point)))
        (goto-char (min (point-max) (+ from contexture--longest-asked-line)))
        (cond ((eobp))
              ((< from (line-beginning-position)) (forward-line 0))
              ((eolp) (forward-line))
              (t (skip-chars-backward "^ " (- (point) 200)) ; rather not in a word
                 (insert (apply #'propertize
                                (concat "\n" (make-string (save-excursion
                                                            (goto-char from)
                                                            (min 40 (skip-chars-forward " ")))
                                                          ?\s))
                                (text-properties-at (point))))
                 (forward-line 0)))))))

(defvar-local contexture-visible--shown 0
  "Number of hidden characters that this buffer displays as escapes.")

(defun contexture--show-hidden (&optional beg end)
  "Display the hidden characters from BEG to END as escapes.
BEG and END default to the whole buffer.  Control characters are left to
Emacs, which shows them as ^A or \\200.  The text does not change.  If there
are very many, the buffer displays marks for the others, and all its text
from left to right."
  (save-excursion
    (goto-char (or beg (point-min)))
    (when (bobp) (setq contexture-visible--shown 0))
    (with-silent-modifications
      (let ((looks 0))
        (while (and (< contexture-visible--shown contexture-visible--most)
                    (< looks contexture-visible--most-looked-at)
                    (re-search-forward contexture-visible--ignorable end t))
          (cl-incf looks)
          (if (contexture-visible--right-before-p)
              ;; An earlier call may have escaped it, when the next character was
              ;; not there yet.
              (remove-text-properties (1- (point)) (point) '(display nil))
            (cl-incf contexture-visible--shown)
            (put-text-property (1- (point)) (point) 'display
                               (contexture-visible--escape (char-before)))))
        (when (or (= looks contexture-visible--most-looked-at)
                  (= contexture-visible--shown contexture-visible--most))
          (contexture-visible--display-marks))))))

(defun contexture-visible--display-marks ()
  "Display each hidden character of this buffer as a mark.
Show all text from left to right, unless nothing after point says otherwise."
  (unless buffer-display-table
    (setq buffer-display-table (make-display-table)))
  (dolist (range contexture-visible--ranges)
    (set-char-table-range buffer-display-table range
                          (vector (make-glyph-code ?\ufffd 'escape-glyph))))
  (dolist (range contexture-visible--joining)
    (set-char-table-range buffer-display-table range nil))
  (when (re-search-forward "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]" nil t)
    (setq bidi-display-reordering nil)))

(defun contexture--trim-right (text &optional space)
  "Return TEXT without the characters of SPACE at its end.
`string-trim-right' does so, too, but takes long if TEXT has long runs of space
elsewhere."
  (let ((space (or space " \t\n\r")) (end (length text)))
    (while (and (> end 0) (cl-find (aref text (1- end)) space))
      (cl-decf end))
    (substring text 0 end)))

(defun contexture--trim (text &optional space)
  "Return TEXT without the characters of SPACE at its beginning and its end."
  (let* ((space (or space " \t\n\r"))
         (text (contexture--trim-right text space))
         (beg 0))
    (while (and (< beg (length text)) (cl-find (aref text beg) space))
      (cl-incf beg))
    (substring text beg)))

(defun contexture--edited (text function)
  "Return TEXT as FUNCTION, called in a buffer that has it, leaves it.
In a long string, each change takes Emacs as long as the string is."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (funcall function)
    (buffer-string)))

(defun contexture--format (string &rest arguments)
  "Return `format-message' of STRING and ARGUMENTS.
Hidden characters in ARGUMENTS become escapes, and nil becomes \"\"."
  (cl-flet ((shown (it) (if (stringp it) (contexture--visible it) (or it ""))))
    (apply #'format-message string (mapcar #'shown arguments))))

(defconst contexture--longest-message 4000
  "Maximum number of characters of a part of a message.
Emacs takes long to display a longer one in the echo area.")

(defun contexture--in-message (string arguments)
  "Return STRING with ARGUMENTS as `contexture--format' does, each one cut."
  (apply #'contexture--format string
         (mapcar (lambda (it)
                   (if (and (stringp it) (> (length it) contexture--longest-message))
                       (concat (substring it 0 contexture--longest-message) "…")
                     it))
                 arguments)))

(defun contexture--message (string &rest arguments)
  "Call `message' with STRING and ARGUMENTS, formatted by `contexture--format'."
  (message "%s" (contexture--in-message string arguments)))

(defun contexture--user-error (string &rest arguments)
  "Signal `user-error' with STRING and ARGUMENTS.
`contexture--format' formats them."
  (user-error "%s" (contexture--in-message string arguments)))

(defun contexture--key (command)
  "Return the key of COMMAND in the selected window's buffer, as text.
If COMMAND has no key, the text says how to call it by name."
  (with-current-buffer (window-buffer)
    (substitute-command-keys (format "\\[%s]" command))))

;;;; What the user has seen

;; Nothing is decided that was not displayed when the key was typed.  Emacs
;; draws a window later than the text changes, and not while keys wait.  So
;; what was seen is noted only in a window that has been drawn.  That is before
;; each command.  As long as something is to decide, it is a few times in a
;; second, too.

(defvar-local contexture--shown 1
  "Position up to which a window has shown this buffer.")

(defvar-local contexture--appeared nil
  "Time when this buffer, its last question, or more of it came into view, or nil.")

(defvar-local contexture--note-shown-functions nil
  "Functions that note what this buffer shows of something to decide.
Each is called in the buffer, with a window that shows the buffer.")

(put 'contexture--note-shown-functions 'permanent-local 'permanent-local-hook)

(defconst contexture--look-seconds 0.2
  "Number of seconds between two looks at what windows show.")

(defvar contexture--looking nil
  "Timer that looks at what windows show, or nil.")

(defun contexture--watch-shown (function)
  "Call FUNCTION with each window that shows this buffer, once it is drawn."
  (add-hook 'contexture--note-shown-functions function nil t)
  (add-hook 'pre-command-hook #'contexture--note-shown nil t)
  (unless (or noninteractive (memq contexture--looking timer-list))
    (contexture--look)))

(defun contexture--unwatch-shown (function)
  "Stop calling FUNCTION with the windows that show this buffer."
  (remove-hook 'contexture--note-shown-functions function t)
  (unless contexture--note-shown-functions
    (remove-hook 'pre-command-hook #'contexture--note-shown t)))

(defun contexture--look ()
  "Note what the windows show of the buffers in which something is to decide."
  (when-let* ((buffers (cl-remove-if-not
                        (lambda (buffer)
                          (buffer-local-value 'contexture--note-shown-functions buffer))
                        (buffer-list))))
    (setq contexture--looking
          (run-with-timer contexture--look-seconds nil #'contexture--look))
    (dolist (buffer buffers)
      (with-current-buffer buffer
        (contexture--note-shown-anywhere)))))

(defun contexture--note-shown-anywhere ()
  "Note what all windows show of this buffer."
  (mapc #'contexture--note-shown (get-buffer-window-list nil nil 'visible)))

(defun contexture--note-shown (&optional window)
  "Note what WINDOW, or the selected one, shows of this buffer.
Unless it shows the text as it is now, that is nothing."
  (let ((window (or window (selected-window))))
    (when (and (eq (window-buffer window) (current-buffer))
               (zerop (window-hscroll window))
               (zerop (window-vscroll window t))
               ;; Nil if something has changed since the window was drawn.
               (or noninteractive (window-line-height 0 window)))
      (run-hook-with-args 'contexture--note-shown-functions window))))

(defun contexture--bottom (window)
  "Return the place where the last line of WINDOW begins, as `posn-at-x-y' does."
  (posn-at-x-y 0 (- (nth 3 (window-body-pixel-edges window))
                    (nth 1 (window-pixel-edges window))
                    1)
               window))

(defun contexture--shown-to (window)
  "Return the position up to which WINDOW, which has been drawn, shows its text.
Strings that are no text of the buffer take room, too, as do tall characters."
  (with-current-buffer (window-buffer window)
    (save-excursion
      (if noninteractive                ; where nothing is drawn
          (progn (goto-char (window-start window))
                 (vertical-motion (window-body-height window) window))
        (let ((place (contexture--bottom window)))
          (goto-char (or (posn-point place) (window-start window)))
          (when (and (null (posn-string place)) (pos-visible-in-window-p (point) window))
            (vertical-motion 1 window))))
      (point))))

(defun contexture--shows-p (window from to)
  "Return non-nil if WINDOW shows all text of this buffer from FROM to TO."
  (and (<= (window-start window) from)
       (<= to (contexture--shown-to window))
       (contexture--uncut-p window from to)))

(defun contexture--uncut-p (window from to)
  "Return non-nil if WINDOW hides and cuts nothing from FROM to TO."
  (and (not (contexture--hidden-p from to))
       (contexture--fits-p window (buffer-substring-no-properties from to)
                           (get-char-property from 'line-prefix))))

(defun contexture--hidden-p (from to)
  "Return non-nil if text from FROM to TO is invisible, or shown as something else."
  (cl-loop for at = from then next while (< at to)
           for next = (next-char-property-change at to)
           thereis (or (invisible-p at)
                       (and (get-char-property at 'display)
                            (not (string-blank-p (buffer-substring at next)))))))

(defun contexture--fits-p (window text &optional prefix)
  "Return non-nil if WINDOW cuts no line of TEXT that begins with PREFIX."
  (let ((columns (contexture--columns window)))
    (or (null columns)
        (cl-loop with columns = (- columns (cond ((stringp prefix) (string-width prefix))
                                                 (prefix columns) ; a space of any width
                                                 (t 0)))
                 for line in (split-string text "\n")
                 always (<= (string-width line) columns)))))

(defun contexture--columns (window)
  "Return the number of columns to which WINDOW cuts lines.
Return nil if it continues them on the next line."
  (when (or truncate-lines (truncated-partial-width-window-p window))
    (max 1 (- (window-max-chars-per-line window)
              (if (bound-and-true-p display-line-numbers)
                  (with-selected-window window (+ 2 (line-number-display-width)))
                0)))))

(defun contexture--note-shown-on (window)
  "Note up to where WINDOW shows this buffer.
What comes after something that was not shown does not count."
  (when (<= (window-start window) contexture--shown)
    (let ((to (contexture--shown-to window)))
      (when (> to contexture--shown)
        (setq contexture--shown to
              contexture--appeared (float-time))))))

(defun contexture--all-shown-p ()
  "Return non-nil if windows have shown all of this buffer by now."
  (contexture--note-shown)
  (>= contexture--shown (point-max)))

;;;; Questions that come by themselves

(defconst contexture--question-seconds 0.5
  "Number of seconds for which a question has to be in view before an answer.
Whoever types while it comes, or answers another one twice, has not read it.")

(defun contexture--note-appeared (window)
  "Note that WINDOW has begun to show its buffer, which has a question.
This is for hooks that run when Emacs draws windows, after what was typed."
  (with-current-buffer (window-buffer window)
    (setq contexture--appeared (float-time))))

(defun contexture--check-read (&rest times)
  "Signal an error unless the question of this buffer has been in view for a while.
TIMES are further times, or nil, at which it may have come."
  (unless noninteractive
    (let ((latest (apply #'max (or contexture--appeared 0) (delq nil times))))
      (unless (< 0 latest (- (float-time) contexture--question-seconds))
        (when (= 0 latest) (setq contexture--appeared (float-time)))
        (discard-input)
        (user-error "This question has only just come; read it, then answer")))))

;;;; Completion

(defun contexture--table (names category &optional annotate)
  "Return a completion table of NAMES, a list, in their order.
CATEGORY is a symbol, such as `contexture-item' or `contexture-conversations',
by which other packages know what is chosen.  ANNOTATE, if non-nil, is called
with a name and returns its annotation."
  (contexture--table-of (lambda () names) category annotate))

(defun contexture--table-of (function category &optional annotate)
  "Return a completion table of what FUNCTION returns, which is called each time.
CATEGORY and ANNOTATE are as for `contexture--table'."
  (lambda (string predicate action)
    (if (not (eq action 'metadata))
        (complete-with-action
         action
         (mapcar #'contexture--visible-candidate (contexture--texts (funcall function)))
         string predicate)
      (when (boundp 'embark-keymap-alist)
        (contexture-embark--offer))
      `(metadata (category . ,category)
                 ,@(and annotate `((annotation-function . ,annotate)))
                 (display-sort-function . identity)
                 (cycle-sort-function . identity)))))

(defun contexture--texts (list)
  "Return those elements of LIST that are strings.
Data may have others.  Emacs takes a list that begins with the symbol `lambda'
for a function, and a completion table that is a function is called."
  (cl-remove-if-not #'stringp list))

;;; Names of files that come from outside

;; Servers, models, results of tools, recorded conversations, compilers and
;; repositories choose names of files.  Emacs may do a lot with a name: it can
;; connect to another machine, start a program, or ask for a password, even
;; if it only looks whether the file exists.  So such a name becomes a file
;; of this machine in one place, `contexture--outside-file'.  Nothing else
;; may look at it: that is for drawing, listing and completing as well.

(defconst contexture-outside--longest 4096
  "Maximum number of characters of a file name from outside.")

(defconst contexture-outside--special
  "\\`/\\(?:dev\\|proc\\|sys\\|net\\|afs\\)\\(?:/\\|\\'\\)"
  "Regexp for names of devices and processes, and of other machines' folders.")

(defconst contexture-outside--programs
  '(archive-mode tar-mode doc-view-mode doc-view-mode-maybe image-mode)
  "Major modes that start programs, or take a file to pieces, to show a file.")

(defvar contexture-outside--handlers nil
  "Value of `file-name-handler-alist' outside of `contexture--inertly'.")

(defmacro contexture--inertly (&rest body)
  "Run BODY, which takes file names apart, without file-name handlers."
  (declare (indent 0) (debug t))
  `(let ((contexture-outside--handlers (or file-name-handler-alist
                                           contexture-outside--handlers))
         (file-name-handler-alist nil))
     ,@body))

(defun contexture--abbreviate (name)
  "Return the file name NAME in its short form, without looking at the file."
  (if (string-search "\0" name) name
    (contexture--inertly (abbreviate-file-name name))))

(defun contexture--relative (file root)
  "Return the name FILE relative to ROOT, or nil if it is not below ROOT.
It is nil, too, if ROOT is."
  (let ((name (and root (contexture--inertly (file-relative-name file root)))))
    (and name (not (string-prefix-p ".." name)) name)))

(defun contexture--last-name (path)
  "Return the last name in PATH, of a file or folder, which may be empty."
  (contexture--inertly (file-name-nondirectory (directory-file-name path))))

(defun contexture--remote-p (name)
  "Return non-nil if NAME, or nil, looks like that of a file on another machine.
No file-name handler is asked, since it might connect."
  (and name (string-match-p "\\`/[^/:]+:\\|\\`/\\[\\|\\`//[^/]" name)))

(defconst contexture-outside--of-names
  '(file-name-completion file-name-all-completions expand-file-name file-directory-p
    file-exists-p file-name-directory file-name-nondirectory)
  "The operations of a file-name handler that only completes names.")

(defun contexture-outside--taken-p (name)
  "Return non-nil if a file-name handler would take the absolute NAME.
Handlers that only complete names do not count: they take all short
names."
  (or (contexture--remote-p name)
      (let ((case-fold-search nil))
        (cl-loop for (regexp . handler) in (or file-name-handler-alist
                                               contexture-outside--handlers)
                 for operations = (and (symbolp handler) (get handler 'operations))
                 ;; As a folder, an archive is taken.
                 thereis (and (or (string-match-p regexp name)
                                  (string-match-p regexp (concat name "/")))
                              (or (null operations)
                                  (cl-set-difference operations
                                                     contexture-outside--of-names)))))))

(defun contexture--outside-file (name &optional folder within)
  "Return the file or folder of this machine that NAME means, or nil.
NAME comes from outside.  It is relative to FOLDER, by default
`default-directory'.  The value is absolute, and safe to look at and to
visit; the file need not exist.  It is nil if NAME, expanded or with its
links followed, would be taken by a file-name handler, as names on other
machines and those of packed and encrypted files are; if it is a device or
a pipe; if it has hidden characters; and, with WITHIN, a folder, if it is not
below that."
  (let ((folder (or folder default-directory)))
    (when (and (stringp name) (stringp folder)
               (< 0 (length name) contexture-outside--longest)
               (equal name (contexture--visible name))
               (not (string-match-p "\\`~[^/]\\|[\\\\]" name))
               (not (contexture-outside--taken-p name))
               (not (contexture-outside--taken-p folder)))
      (let ((file (contexture--inertly
                    (expand-file-name (substring-no-properties name) folder))))
        (when (contexture-outside--safe-p file)
          (let ((true (contexture--inertly (ignore-errors (file-truename file)))))
            (and true
                 (contexture-outside--safe-p true)
                 (contexture-outside--plain-p true)
                 (or (null within) (contexture-outside--within-p true within))
                 file)))))))

(defun contexture-outside--safe-p (name)
  "Return non-nil if Emacs can look at the absolute NAME without side effects."
  (not (or (contexture-outside--taken-p name)
           (string-match-p contexture-outside--special name))))

(defun contexture-outside--plain-p (true)
  "Return non-nil if TRUE, a true name, is that of a file, of a folder, or of none.
Emacs would wait for a pipe, and read from a device without end."
  (memq (string-to-char
         (or (file-attribute-modes (contexture--inertly (ignore-errors (file-attributes true))))
             "-"))
        '(?- ?d)))

(defun contexture-outside--within-p (true folder)
  "Return non-nil if TRUE, the true name of a file, is FOLDER or below it."
  (when-let* ((folder (contexture--outside-file folder "/")))
    (contexture--inertly
      (string-prefix-p (file-name-as-directory (file-truename folder))
                       (file-name-as-directory true)))))

(defun contexture--outside-folder (name)
  "Return the folder of this machine that NAME, from outside, means, or nil.
The value ends in a slash.  NAME may be nil."
  (when-let* ((file (contexture--outside-file name "/")))
    (and (file-directory-p file) (file-name-as-directory file))))

(defun contexture--visited-buffer (name)
  "Return the buffer that visits the file NAME, or nil.
Names are only compared, so NAME may come from outside."
  (cl-find-if
   (lambda (buffer)
     (let ((file (buffer-local-value 'buffer-file-name buffer))
           (true (buffer-local-value 'buffer-file-truename buffer)))
       (or (equal name file)
           (and name true
                (equal name (contexture--inertly (expand-file-name true)))))))
   (buffer-list)))

(defun contexture--outside-buffer (name)
  "Return the buffer that visits the file NAME, from outside, or nil.
NAME may be nil."
  (or (and name (contexture--visited-buffer name))
      (when-let* ((file (contexture--outside-file name)))
        (find-buffer-visiting file))))

(defun contexture--visit-outside (name)
  "Return a buffer that visits the file NAME, as the user asked, or nil.
NAME comes from outside.  If it is on another machine, or packed, show it
and ask first."
  (or (contexture--outside-buffer name)
      (if-let* ((file (contexture--outside-file name)))
          (and (file-exists-p file) (find-file-noselect file))
        (and (equal name (contexture--visible name))
             (equal name (contexture--inertly (expand-file-name name "/")))
             (string-match-p "\\`/[][[:alnum:]_.@%#|:/+-]+\\'" name)
             ;; Programs would take such a host or user for an option.
             (not (string-match-p "[:@|]-" name))
             (contexture-outside--taken-p name)
             (contexture--y-or-n-p
              (format "%s is on another machine, or packed.  Visit it? " name))
             (find-file-noselect name)))))

(defvar rng-nxml-auto-validate-flag)

(defun contexture--insert-file (file &optional end)
  "Insert the text of FILE after point, as it is; return what Emacs returns.
With END, insert at most as many bytes.  Emacs would decode formats such as
enriched text, which can show other words than the file has."
  (let ((format-alist nil)
        (after-insert-file-functions nil))
    (insert-file-contents file nil (and end 0) end)))

(defvar org-modules-loaded)
(declare-function org-mode "org" ())

(defun contexture-outside--org-mode ()
  "Begin Org mode while this buffer, of a file from outside, is empty.
Org would read the files and start the programs that the text names."
  (let ((text (buffer-string)))
    (with-silent-modifications
      (erase-buffer)
      (let ((org-modules-loaded t))
        (org-mode))
      (save-excursion
        (let ((inhibit-modification-hooks nil))
          (insert text))))))

(defun contexture--visit-quietly (file)
  "Return a buffer that visits FILE, a local one, or nil if it is no text.
FILE need not exist.  The user did not ask for it, so this asks nothing and
starts no program, and the file chooses no function: of its local variables,
those that are safe count, but not its mode."
  (or (find-buffer-visiting file)
      (and (or (not (file-exists-p file))
               (and (file-regular-p file) (file-readable-p file)))
           (not (memq (intern-soft (or (contexture--file-mode file) ""))
                      contexture-outside--programs))
           (let* ((vc-handled-backends nil)
                  (format-alist nil)
                  (large-file-warning-threshold nil)
                  (inhibit-interaction t)
                  (magic-mode-alist nil)
                  (magic-fallback-mode-alist
                   (cl-remove-if (lambda (it) (memq (cdr it) contexture-outside--programs))
                                 magic-fallback-mode-alist))
                  (rng-nxml-auto-validate-flag nil)
                  (buffer (let ((enable-local-variables nil)
                                (auto-mode-alist
                                 (mapcar (lambda (it)
                                           (if (eq (cdr it) 'org-mode)
                                               (cons (car it) #'contexture-outside--org-mode)
                                             it))
                                         auto-mode-alist)))
                            (find-file-noselect file t))))
             (with-current-buffer buffer
               (let ((enable-local-variables :safe)
                     (enable-local-eval nil)
                     (ignored-local-variables (append '(mode eval) ignored-local-variables)))
                 (hack-local-variables))
               (contexture--draw-parts-alike))
             buffer))))

;;; Modes for texts that come from outside

;; A model names the language of its code.  That must not choose a function to
;; call: so the modes are those of a list.  When some modes begin, they do what
;; the text says: Org reads other files, runs LaTeX, shows pictures and changes
;; tables.  So a mode begins in an empty buffer, and the text comes later.  Some
;; modes draw code in other languages within their text, by the modes that the
;; text names: they are told not to.

(defconst contexture--code-modes
  '(asm-mode awk-mode bash-ts-mode bat-mode bibtex-mode c++-mode c-mode
    clojure-mode cmake-mode coffee-mode conf-colon-mode conf-mode conf-space-mode
    conf-toml-mode conf-unix-mode csharp-mode css-mode cuda-mode d-mode dart-mode
    diff-mode dockerfile-mode elixir-mode elm-mode emacs-lisp-mode erlang-mode
    f90-mode fortran-mode fsharp-mode gdscript-mode gfm-mode go-mod-mode go-mode
    graphql-mode groovy-mode haskell-mode html-mode java-mode javascript-mode
    js-json-mode js-mode js2-mode json-mode julia-mode kotlin-mode latex-mode
    lisp-data-mode lisp-mode lua-mode m4-mode makefile-gmake-mode makefile-mode
    markdown-mode matlab-mode meson-mode nim-mode nix-mode nxml-mode objc-mode
    ocaml-mode octave-mode org-mode pascal-mode perl-mode php-mode
    prolog-mode protobuf-mode purescript-mode python-mode racket-mode rst-mode
    ruby-mode rust-mode rustic-mode scala-mode scheme-mode scss-mode sgml-mode
    sh-mode sql-mode swift-mode tcl-mode terraform-mode tex-mode texinfo-mode
    text-mode toml-mode tuareg-mode typescript-mode verilog-mode vhdl-mode
    xml-mode yaml-mode zig-mode)
  "Major modes for code and texts from outside.")

(defvar diff-font-lock-syntax)
(defvar diff-refine)
(defvar markdown-fontify-code-blocks-natively)
(defvar org-src-fontify-natively)

(defun contexture--draw-parts-alike ()
  "Let the text of this buffer choose no mode and no program for its parts."
  (setq-local org-src-fontify-natively nil
              markdown-fontify-code-blocks-natively nil
              diff-font-lock-syntax nil
              diff-refine nil))

(defun contexture--enter-mode (mode &optional text)
  "Make TEXT, from outside, the text of this buffer, in the major mode MODE.
TEXT is nil if there is none yet.  TEXT chooses no other mode for its
parts, and starts no program.  Users' hooks do not run, and no file of
the project is looked at."
  (erase-buffer)
  ;; Org would load its links to mail readers, which start programs.  To check
  ;; XML, Emacs would read whatever file the folder's schemas.xml names.
  (let ((org-modules-loaded t)
        (rng-nxml-auto-validate-flag nil)
        (default-directory "/"))
    (unwind-protect
        (contexture--inertly
          (delay-mode-hooks (funcall mode)))
      (contexture--draw-parts-alike)
      (when text
        (save-excursion (contexture--insert-code text))))))

(defconst contexture--deepest-code 100
  "Depth of brackets in code beyond which its faces are left out.")

(defconst contexture--drawing-seconds 0.05
  "Number of seconds after which the faces of the rest of some code are left out.")

(defconst contexture--drawing-step 1000
  "Number of characters of code that get their faces at once, to the line's end.")

(defvar-local contexture--depth 0
  "Depth of brackets at the end of the code that was inserted in this buffer.")

(defun contexture--insert-code (code)
  "Insert CODE, from outside, at the end of this buffer.
Where brackets nest too deep, the mode is not told: some end Emacs then."
  (when (bobp) (setq contexture--depth 0))
  (when (< contexture--depth contexture--deepest-code)
    (setq contexture--depth
          (let ((depth contexture--depth))
            (with-temp-buffer
              (insert code)
              (max (car (parse-partial-sexp (point-min) (point-max) contexture--deepest-code nil
                                            (list depth)))
                   (contexture--type-depth))))))
  (let ((inhibit-modification-hooks (>= contexture--depth contexture--deepest-code)))
    (insert code)))

(defun contexture--type-depth ()
  "Return how deep types nest in this buffer, as in A<B<C; at most the deepest."
  (let ((depth 0) (last (point-min)))
    (goto-char last)
    (while (and (< depth contexture--deepest-code) (search-forward "<" nil t))
      (save-excursion
        (backward-char)
        (skip-chars-backward "[:alnum:]_,.? \t\n" last)
        (setq depth (if (= (point) last) (1+ depth) 1)))
      (setq last (point)))
    (if (= depth contexture--deepest-code) depth 0)))

(defun contexture--draw-code (beg end)
  "Give the code from BEG to END its faces, as this buffer's mode does.
Odd code may take long: leave out the faces from where brackets nest too deep,
of very long lines, and of the rest once it takes too long; then return nil."
  (let ((limit (+ (float-time) contexture--drawing-seconds)))
    (save-excursion
      (goto-char beg)
      (while (and (< (point) end) (< (float-time) limit)
                  (< contexture--depth contexture--deepest-code))
        (let ((from (point)))
          (goto-char (min end (+ from contexture--drawing-step)))
          (unless (bolp) (forward-line))
          (goto-char (min end (point)))
          (when (< (- (point) from) (* 2 contexture--drawing-step))
            (save-excursion (font-lock-fontify-region from (point))))))
      (= (point) end))))

(defconst contexture--git-settings
  '("core.fsmonitor=false"
    "core.hooksPath=/dev/null"
    "core.pager=cat"
    "core.sshCommand=false"
    "core.askPass=false"
    "core.alternateRefsCommand=true"
    "core.attributesFile=/dev/null"
    "credential.helper="
    "diff.orderFile=/dev/null"
    "gpg.program=false"
    "log.showSignature=false"
    "log.mailmap=false"
    "mailmap.file=/dev/null"
    "mailmap.blob="
    "protocol.allow=never"
    "submodule.recurse=false"
    "uploadpack.packObjectsHook=")
  "Settings with which Git runs no program that a repository names.
Nor does it read a file such as /dev/zero that one names.  Git cannot search in
submodules and in new files at once.  The server has the same list.")

(defconst contexture--git-seconds 30
  "Number of seconds after which Git is ended.
It may wait for ever, as for a pipe within its folder.")

(defconst contexture--git-seconds-there 10
  "Number of seconds after which Git on another machine is ended.
Emacs waits for it.")

(defconst contexture--git-script
  "\"$@\" & git=$!; \
{ trap 'kill \"$s\"; exit' TERM; sleep %s & s=$!; wait \"$s\"; kill \"$git\"; } >/dev/null 2>&1 & \
clock=$!; wait \"$git\"; status=$?; kill \"$clock\" 2>/dev/null; \
[ $status != 143 ] || echo 'Git did not end within %s seconds' >&2; exit $status"
  "Script for a shell that runs its arguments, a command, and ends it in time.
The format takes the number of seconds, twice.")

(defun contexture--git (root &optional there)
  "Return the beginning of a command of Git for the repository in ROOT, a list.
Git then runs and reads nothing that the repository names.  It takes
ROOT as the folder of its files, even if the repository names another.
ROOT is a name on the machine where Git runs; THERE means that this is
another machine.  Git is ended in time, whatever it waits for."
  (let ((seconds (if there contexture--git-seconds-there contexture--git-seconds)))
    `("/bin/sh" "-c" ,(format contexture--git-script seconds seconds) "git"
      "git" "--no-pager" ,(concat "--work-tree=" (expand-file-name root))
      ,@(mapcan (lambda (setting) (list "-c" setting)) contexture--git-settings))))

(defconst contexture--git-variables
  '("GIT_ALLOW_PROTOCOL=none" "GIT_NO_LAZY_FETCH=1" "GIT_TERMINAL_PROMPT=0" "GIT_OPTIONAL_LOCKS=0")
  "Variables with which Git fetches nothing and asks nothing.")

(defun contexture--list-files-script (&optional shallow hidden)
  "Return a command for a shell that prints the files of its folder, with nulls.
It is for another machine.  Git lists them if it can.  With SHALLOW, leave out
folders below.  With HIDDEN, hidden files count where Git does not tell."
  (let ((find (concat "find ." (and shallow " -maxdepth 1")
                      (if hidden " -name .git" " -name '.?*'") " -prune -o -type f -print0")))
    (if shallow find
      (format "{ t=$PWD; while [ -n \"$t\" ] && [ ! -e \"$t/.git\" ]; do t=${t%%/*}; done; \
[ -n \"$t\" ] && env %s %s ls-files -z --cached --others --exclude-standard 2>/dev/null || %s; }"
              (string-join contexture--git-variables " ")
              (mapconcat (lambda (word)
                           (if (string-prefix-p "--work-tree" word) "--work-tree=\"$t\""
                             (shell-quote-argument word)))
                         (contexture--git "/" t) " ")
              find))))

(defconst contexture--git-differences
  '("--no-color" "--no-ext-diff" "--no-textconv" "--submodule=short" "--ignore-submodules=dirty")
  "Options of the commands of Git that write differences.
Git then runs no program that the repository names.  It does not look at
the files of submodules, since it would then obey the settings of each
submodule.")

(defun contexture--git-environment ()
  "Return the environment in which Git fetches nothing, by no program."
  (append contexture--git-variables process-environment))

;;; What calls and commands share

(defmacro contexture--with-live-buffer (buffer &rest body)
  "Run BODY in BUFFER if that is live, else return nil."
  (declare (indent 1) (debug t))
  (macroexp-let2 nil buffer buffer
    `(when (buffer-live-p ,buffer)
       (with-current-buffer ,buffer ,@body))))

(defmacro contexture--widened (&rest body)
  "Run BODY in this buffer without narrowing; then restore narrowing and point."
  (declare (indent 0) (debug t))
  `(save-excursion
     (save-restriction
       (widen)
       ,@body)))

;; The options and hooks that concern the server, and the wording of
;; messages.

(defgroup contexture-rpc nil
  "How Emacs reaches the Contexture server."
  :group 'contexture
  :prefix "contexture-")

(defcustom contexture-server-command nil
  "The server's program: a string, or a list of program and arguments.
Nil means look for it: first for one that was built or installed beside the
Emacs package, then for `contexture' in the variable `exec-path', then in
\"~/.local/bin\" and \"~/.cargo/bin\".  Emacs adds the arguments
\"serve --stdio\" and those of `contexture-server-args'."
  :type '(choice (const :tag "Find it" nil)
                 (file :tag "Program")
                 (repeat :tag "Program and arguments" string)))

(defcustom contexture-server-args nil
  "Additional arguments for the server, after \"serve --stdio\".
A change takes effect after `contexture-disconnect'."
  :type '(repeat string))

(defcustom contexture-request-timeout 10
  "Number of seconds after which a command stops waiting for an answer."
  :type 'number)

(defcustom contexture-reconnect-delay 0.25
  "Number of seconds to wait before the first attempt to reconnect to a server.
The wait doubles, up to `contexture-reconnect-max-delay', each time an
attempt fails or the server dies before it has answered a call."
  :type 'number)

(defcustom contexture-reconnect-max-delay 30
  "Maximum number of seconds between two attempts to reach the server."
  :type 'number)

(defcustom contexture-resend-limit 10
  "Number of times the server may die during a call before the call fails.
Each death counts only for the oldest unanswered call.  See
`contexture-reconnect-delay' for the time between attempts."
  :type 'natnum)

(defcustom contexture-queue-limit (* 64 1024 1024)
  "Maximum number of characters in all calls that wait for answers.
Beyond it, new calls fail until the server has answered others."
  :type 'natnum)

(defcustom contexture-events-buffer-size 0
  "Maximum size, in characters, of the buffer that logs messages.
These are all messages between Emacs and the server.  If the value is 0,
the default, there is no such buffer."
  :type 'natnum)

(defcustom contexture-secret-file "~/.config/contexture/secret"
  "File whose first line is the secret for servers on other machines.
Emacs sends it to servers that it reaches by TCP, except on this machine."
  :type 'file)

(defvar contexture-connected-hook nil
  "Normal hook run whenever a connection to a server is made, or made again.")

(defconst contexture--version "0.1.0"
  "Version of this package; the server should have the same one.")

(defvar contexture-disconnected-hook nil
  "Normal hook run when Emacs leaves the server or cannot reach it.
It runs after `contexture-disconnect', and each time an attempt to
connect fails.  It also runs when Emacs loses a connection and does not
need it now.  It does not run if a lost connection is made again at the
first attempt.")

(defvar contexture-notification-functions nil
  "Abnormal hook run for each notification from the server.
Each function is called with METHOD, a symbol, and PARAMS, a plist.
Use `contexture-watch' to add one: it also subscribes to notifications.")

(defconst contexture--max-items 1000
  "Largest capacity of a context, in items, that the server allows.")

(defvar contexture--last-replaced 0
  "Number of characters that were replaced in the last message sent.")

;;;; Property lists

(defun contexture--plist (&rest plist)
  "Return PLIST without the keys whose value is nil."
  (cl-loop for (key value) on plist by #'cddr
           when value nconc (list key value)))

(defun contexture--select (plist keys)
  "Return PLIST with only those of its keys that are in KEYS."
  (cl-loop for (key value) on plist by #'cddr
           when (memq key keys) nconc (list key value)))

(defun contexture--pluck (key entries)
  "Return the list of the values that the plists ENTRIES have for KEY."
  (mapcar (lambda (entry) (plist-get entry key)) entries))

(defun contexture--entry (key value entries)
  "Return the first of the plists ENTRIES that has VALUE for KEY, or nil."
  (cl-find-if (lambda (entry) (equal (plist-get entry key) value)) entries))

(defun contexture--sum (key entries)
  "Return the sum of the numbers that the plists ENTRIES have for KEY.
A missing one counts as 0."
  (cl-loop for entry in entries sum (or (plist-get entry key) 0)))

(defun contexture--tokens-to-send (items)
  "Return the number of tokens that are sent for ITEMS.
A covered item does not count: it is sent as a part of another one."
  (cl-loop for item in items
           unless (plist-get item :covered-by)
           sum (or (plist-get item :tokens) 0)))

;;;; Phrases

(defconst contexture--waiting
  "Waiting for the Contexture server…"
  "Message while a command waits for the server.")

(defun contexture--count (number noun &optional plural)
  "Return NUMBER and NOUN, or PLURAL unless NUMBER is 1, as text.
PLURAL defaults to NOUN with an s."
  (format "%d %s" number (if (= number 1) noun (or plural (concat noun "s")))))

(defun contexture--number (number)
  "Return NUMBER, an integer or nil for 0, with commas between the thousands."
  (let ((text (number-to-string (or number 0))))
    (while (string-match "\\`\\(-?[0-9]+\\)\\([0-9]\\{3\\}\\)" text)
      (setq text (replace-match "\\1,\\2" nil nil text)))
    text))

(defun contexture--replaced-text (number)
  "Return a phrase for NUMBER characters that could not be sent."
  (concat (contexture--count number "character that is not text was"
                             "characters that are not text were")
          " replaced by U+FFFD"))

(defun contexture-show-error (problem)
  "Show PROBLEM, the error of a call, in the echo area."
  (contexture--message "Contexture: %s" (contexture--error-text problem)))

(defun contexture--error-text (problem)
  "Return the message for PROBLEM, the error of a call.
A context has its label there.  If it is full, the message names the
command that helps."
  (let* ((data (plist-get problem :data))
         (manager (plist-get data :manager)))
    (cond ((eq (plist-get data :kind) :capacity-full)
           (contexture--full-text (plist-get data :count) (plist-get data :tokens)
                                  (plist-get data :capacity) (plist-get data :pinned)))
          (manager (string-replace (prin1-to-string manager) (contexture--label manager)
                                   (or (plist-get problem :message) "")))
          (t (contexture--own-advice (plist-get data :kind) (plist-get problem :message))))))

(defun contexture--own-advice (kind message)
  "Return MESSAGE, of an error of KIND, with advice for users of Emacs.
What the server advises is for programs."
  (pcase kind
    (:file-too-large
     (replace-regexp-in-string
      "\\([0-9]+\\) bytes, but the limit is \\([0-9]+\\);.*"
      (lambda (match)
        (save-match-data
          (string-match "\\([0-9]+\\)[^0-9]+\\([0-9]+\\)" match)
          (cl-flet ((size (group) (file-size-human-readable
                                   (string-to-number (match-string group match)) 'iec " " "B")))
            (format "%s, and files of at most %s are added whole; visit it and mark a part"
                    (size 1) (size 2)))))
      message t t))
    (:file-binary (replace-regexp-in-string "; send text with add-item.*" "" message t t))
    (_ message)))

(defun contexture--full-text (files tokens capacity pinned)
  "Return a phrase that says that a context is full, and what to do.
CAPACITY is the number of items that it can hold, and PINNED the number of
items that are pinned.  FILES and TOKENS are those of the directory that was
to be added; they are nil if something else was."
  (let ((needed (and files (+ files pinned))))
    (concat
     (if files
         (format "%s (%s) %s not fit; the context holds at most %d"
                 (contexture--count files "file") (contexture--count tokens "token")
                 (if (= files 1) "does" "do") capacity)
       (format "the context is full; it holds at most %d" capacity))
     (when (> pinned 0) (format " (%d pinned)" pinned))
     (cond ((and needed (<= needed contexture--max-items))
            (format "; raise the limit to %d or more with M-x contexture-set-limit, \
or add a listing" needed))
           (files (format ", and no context can hold more than %d; add a smaller \
directory or a listing" contexture--max-items))
           (t "; unpin or remove some, or raise the limit with \
M-x contexture-set-limit")))))

(defun contexture--problem-text (problem)
  "Return the message for PROBLEM, a condition as `condition-case' has it."
  (pcase problem
    (`(contexture-unreadable ,line)
     (format "ignored a line from the server that is not a message: %s" line))
    (`(contexture-error ,(and (pred stringp) text) . ,_) text)
    (_ (error-message-string problem))))

;;;; Keys

(defvar evil-buffer-regexps)

(defun contexture--choose-evil-state (state &optional by-name)
  "If Evil is loaded, let buffers of this major mode begin in STATE.
In Evil's normal state, its keys would hide those of a list.  A state that
the user has chosen for this mode stays.  If BY-NAME is non-nil, let the
buffer of this name begin in STATE, whatever mode it gets."
  (when (and (fboundp 'evil-initial-state) (fboundp 'evil-set-initial-state))
    (cond (by-name
           (let ((regexp (concat "\\`" (regexp-quote (buffer-name)) "\\'")))
             (unless (assoc regexp evil-buffer-regexps)
               (setq evil-buffer-regexps
                     (append evil-buffer-regexps (list (cons regexp state)))))))
          ((not (evil-initial-state major-mode))
           (evil-set-initial-state major-mode state)))))

;;;; Tool bars

(defun contexture--show-tool-bar (&rest items)
  "Have this buffer's tool bar show ITEMS.
Each is (ICON COMMAND LABEL . PROPERTIES), where ICON is one of Emacs's own.
Do nothing in an Emacs without tool bars."
  (when (featurep 'tool-bar)
    (setq-local tool-bar-map (make-sparse-keymap))
    (pcase-dolist (`(,icon ,command ,label . ,properties) items)
      (apply #'tool-bar-local-item icon command command tool-bar-map
             :label label :help label properties))))

;;;; Later

(defun contexture--later (function &rest args)
  "Call FUNCTION with ARGS as soon as Emacs waits for input; return the timer."
  (apply #'run-at-time 0 nil function args))

(defvar contexture--own-session-calls nil
  "Methods of calls of this Emacs about conversations that are not answered yet.
What the server announces meanwhile is not another client's change.")

(defconst contexture--question-height 0.7
  "Part of a frame's height that a question may take.")

(defvar read-char-choice-use-read-key)
(defvar y-or-n-p-use-read-key)

(defmacro contexture--asking-in-order (&rest body)
  "Run BODY, which asks in the minibuffer; show the question from left to right.
Otherwise names in some scripts would change places with what is beside them."
  (declare (indent 0) (debug t))
  `(let ((y-or-n-p-use-read-key nil)    ; the echo area has no such setting
         (read-char-choice-use-read-key nil))
     (minibuffer-with-setup-hook (lambda () (setq bidi-display-reordering nil))
       ,@body)))

(defun contexture--y-or-n-p (prompt)
  "Ask PROMPT, a question, in the echo area; return non-nil for yes.
What was typed before it was asked is no answer.  Outside of commands there is
no last event, which `y-or-n-p' takes for one of the mouse: it would show a
dialog box.  Where nobody can answer, the answer is no.  A question that cannot
be shown is not asked: names from outside may be long."
  (unless executing-kbd-macro (discard-input))
  (let ((last-nonmenu-event (or last-nonmenu-event t))
        (max-mini-window-height contexture--question-height))
    (when (and (not noninteractive)
               (> (cl-loop for line in (split-string prompt "\n")
                           sum (1+ (/ (string-width line) (max 1 (- (frame-width) 20)))))
                  (* contexture--question-height (frame-height))))
      (contexture--user-error "The question has no room in this frame: %s" prompt))
    (condition-case nil
        (contexture--asking-in-order (y-or-n-p prompt))
      (end-of-file nil))))

;;;; Models

(defun contexture--model-names (result)
  "Return the names of the models in RESULT, the models of a provider.
Each has what is known of the model as its text property `contexture-model'."
  (mapcar (lambda (model)
            (propertize (plist-get model :name) 'contexture-model model))
          (plist-get result :models)))

(defun contexture--model-about (name)
  "Return an annotation with what is known of the model NAME, or \"\".
NAME comes from `contexture--model-names', or is nil."
  (let* ((model (and name (get-text-property 0 'contexture-model name)))
         (limit (plist-get model :limit))
         (abilities (cl-loop for (key word) in '((:tools "tools") (:pictures "pictures")
                                                 (:effort "effort"))
                             when (plist-get model key) collect word)))
    (if (or limit abilities)
        (concat "  " (string-join `(,@(and limit (list (format "%s tokens" limit)))
                                    ,@abilities)
                                  ", "))
      "")))

(defcustom contexture-providers nil
  "Models to talk to, besides those in the server's configuration file.
Each is (NAME . PLIST).  Emacs sends them to the server each time it
connects, and the server keeps them until it ends.  Changes take effect
when they are made, also in an entry that is removed.  The plist has

  :kind         the interface of the server, one of those in
                `contexture-provider--kinds', such as openai for any
                server with that of OpenAI
  :model        the provider's name for the model
  :base-url     the address, if it is not the usual one of that kind
  :auth-source  t to look up the API key with `auth-source' by the host
                of the address, or a plist of :host and :user to look it
                up by.  Emacs sends the key to the server, which keeps it
                only in memory
  :api-key-env  instead of :auth-source, the environment variable of the
                server that has the key
  :api-key-command
                instead of :auth-source, the command that prints the key
  :key-header   the header for the key, such as \"authorization\" or
                \"api-key\"
  :headers      further headers, a list of (:name NAME :value TEXT),
                (:name NAME :env VARIABLE) or (:name NAME :command COMMAND)
  :api-version  the version of Azure's interface; the model is then the
                name of a deployment
  :effort       how much the model reasons: off, low, medium or high
  :temperature, :top-p
                how varied the answers are
  :extra        further members of each request: a plist, or JSON text
  :script       the file with the answers of a scripted provider
  :context      limit of the model in tokens; Ollama's own default is
                often small
  :answer-tokens
                maximum number of tokens of an answer
  :first-byte, :silence
                how many seconds an answer may take to begin, and to go on
  :ca-file      a file with certificates to trust
  :proxy        the address of a proxy, or none
  :thinks       t if answers begin within reasoning
  :price-input, :price-output
                price of a million tokens, in US dollars
  :default      t to use this model when none is named

`contexture-configure-provider' asks for the parts that are needed."
  :type '(alist :key-type (string :tag "Name")
                :value-type (plist :tag "Settings")))

(defun contexture--providers-set (_variable _value operation _buffer)
  "Send the server what changed in `contexture-providers', after OPERATION set it."
  (when (and (eq operation 'set) (fboundp 'contexture-provider--tell-changed))
    (contexture--later #'contexture-provider--tell-changed)))

(add-variable-watcher 'contexture-providers #'contexture--providers-set)

(defvar contexture-providers-hook nil
  "Normal hook run each time the server has accepted one of `contexture-providers'.")

;;;; Tools

(defcustom contexture-tools nil
  "Tools of Emacs that models may call, and where.
Each is (TOOL PLACE).  TOOL is a name, or t for all tools that only read.
PLACE is t for all conversations, (conversation . ID) for the conversation with
that id, or (project . FOLDER) for the conversations of a project.  It is
`agents' or (agents . FOLDER) to offer the tool to agents, which are
connected by MCP, in all projects or in that of FOLDER; Emacs asks you
before an agent changes something.

`contexture-tools-on' and `contexture-tools-off' change this for the
running Emacs."
  :type '(repeat (list (choice (const :tag "All that only read" t)
                               (string :tag "Name"))
                       (choice (const :tag "Everywhere" t)
                               (cons :tag "Conversation" (const session) (string :tag "Id"))
                               (cons :tag "Project" (const project) directory)
                               (const :tag "Other agents" agents)
                               (cons :tag "Other agents in project"
                                     (const agents) directory))))
  :set (lambda (option value)
         (set-default option value)
         (when (featurep 'contexture-tools)
           (contexture-tools--changed))))

;;;; The server in use

(defvar contexture--connection nil
  "Connection in use, or nil before the first call.")

(defvar contexture--watched-topics nil
  "Alist from each function that watches notifications to a list of topics.")

(defvar contexture--live-off nil
  "Non-nil means that items do not follow buffers, as in tests with recordings.
Following makes calls that are not those of the package under test.")

(defvar contexture--live-watching nil
  "Non-nil if Emacs watches what others do with the live items of its buffers.")

(defun contexture-running-p ()
  "Return non-nil if a server is connected."
  (and contexture--connection (jsonrpc-running-p contexture--connection)))

(defun contexture-watch (function &optional topics)
  "Call FUNCTION for the server's notifications, now and after reconnects.
Its arguments are METHOD, a symbol, and PARAMS, a plist.  TOPICS is a
list of symbols to subscribe to besides `context-changed'; every watching
function gets the notifications that any of them wants.  This starts no
server."
  (setf (alist-get function contexture--watched-topics nil t) topics)
  (add-hook 'contexture-notification-functions function)
  (when contexture--connection
    (contexture--subscribe contexture--connection)))

(defun contexture-unwatch (function)
  "Stop calling FUNCTION for the server's notifications.
End the subscriptions to topics that only FUNCTION wanted."
  (remove-hook 'contexture-notification-functions function)
  (setf (alist-get function contexture--watched-topics nil t) nil)
  (when contexture--connection
    (contexture--subscribe contexture--connection)))

(defun contexture--wanted-topics ()
  "Return the names of all topics to subscribe to."
  (when (or contexture-notification-functions contexture--live-watching)
    (cons "context-changed"
          (sort (delete-dups
                 (append (and contexture--live-watching (list "text-wanted"))
                         (cl-loop for (function . topics) in contexture--watched-topics
                                  when (memq function contexture-notification-functions)
                                  append (mapcar #'symbol-name topics))))
                #'string<))))

;;; Which contexts a buffer has

(defcustom contexture-model nil
  "Model for conversations in which you have chosen none.
The name of a provider means its model.  Nil means the server's default."
  :type '(choice (const :tag "The server's default" nil) (string :tag "Model or provider")))

(defcustom contexture-format 'markdown
  "Format in which contexts are copied and inserted."
  :type `(choice ,@(mapcar (lambda (it) (list 'const :doc (cdr it) (car it))) contexture--formats)))

(defcustom contexture-limit nil
  "Maximum number of tokens that a context should have, or nil for no limit.
Items that exceed it are left out of what you preview, copy and insert, and
of what `contexture-gptel-mode' sends.  `contexture-mode' shows the tokens
beside the limit, in the face `contexture-over-limit' above 80 percent."
  :type '(choice (const :tag "No limit" nil) (natnum :tag "Tokens")))

;; The layers of a buffer: the contexts whose items it sends, from
;; general to specific, and the one among them to which its commands
;; add.  The server gives them their names (method `open-layers'), which
;; say which project or file is meant; users see labels.  A buffer asks once
;; and keeps the answer.

(defcustom contexture-add-to 'project
  "Where commands add items, unless `contexture-context' is set.
`project' means to this project or, outside of projects, to this folder.
`buffer' means to this buffer alone: to its file, to the buffer itself if it
visits no file, or to its conversation.  `shared' means everywhere.  What is
in any of these three is sent.  With a prefix argument, the commands
that add ask where to.  Commands for which it means something else ask
with two prefix arguments.

A function is called without arguments in the buffer, and returns the
name of the only context that the buffer then uses."
  :type '(choice (const :tag "This project" project)
                 (const :tag "This buffer" buffer)
                 (const :tag "Everywhere" shared)
                 (function :tag "Function"))
  :group 'contexture)

(defvar-local contexture-context nil
  "Name of the only context on which commands in this buffer work.
Nil means that the buffer has the usual layers; see `contexture-add-to'.  A
list of names, from general to specific, means that these contexts are its
layers.")

;; Reverting the buffer, or changing its major mode, does not reset it.
(put 'contexture-context 'permanent-local t)

(defvar-local contexture--layers nil
  "Layers of this buffer as (KEY . LAYERS), once they are known.
They are valid while KEY is the value of `contexture--layers-key'.")

(defvar-local contexture--buffer-number nil
  "Name and number of this buffer as the server knows them, as (NAME . NUMBER).
Both are strings; nil means that the buffer has no number yet.")

(put 'contexture--buffer-number 'permanent-local t)

(defconst contexture--shared "*shared*"
  "Name of the context for everywhere, a layer of each buffer.")

(defvar contexture--labels (make-hash-table :test #'equal)
  "Hash table from a context's name to its label, which users see.")

(defvar contexture--project-roots (make-hash-table :test #'equal)
  "Hash table from a directory to the root of its project.
Directories without a project are not in it, since they may get one.")

(defvar contexture--buffer-count 0
  "Number of buffers of this Emacs that have got a number.")

(defvar contexture--emacs-number nil
  "What the function `contexture--emacs-number' has returned, or nil.")

(defconst contexture--choosing-layer
  '(contexture-add-dwim contexture-add-region contexture-add-buffer
    contexture-add-defun contexture-add-file contexture-add-symbol
    contexture-lisp-add-symbol contexture-lisp-add-inspector contexture-lisp-add-note
    contexture-slime-add-symbol contexture-slime-add-inspector contexture-slime-add-note
    contexture-sly-add-symbol contexture-sly-add-inspector contexture-sly-add-note)
  "Commands for which a prefix argument means to ask for the layer.")

(defconst contexture--choosing-layer-twice
  '(contexture-add-kill contexture-add-diagnostics contexture-add-diff
    contexture-add-compilation contexture-add-directory contexture-add-project
    contexture-add-map)
  "Commands for which two prefix arguments mean to ask for the layer.
One prefix argument means something else to them.")

;;;; Layers

(defun contexture--asking-buffer ()
  "Return the current buffer; in the minibuffer, the one it was called from."
  (if-let* ((window (and (minibufferp) (minibuffer-selected-window))))
      (window-buffer window)
    (current-buffer)))

(defun contexture--base-buffer ()
  "Return the current buffer, or its base if it is an indirect one."
  (or (buffer-base-buffer) (current-buffer)))

(defmacro contexture--in-asking-buffer (&rest body)
  "Run BODY in the buffer on whose context commands work.
That is the one from which the minibuffer was entered, if it is selected, and
the base of an indirect buffer that has no `contexture-context'."
  (declare (indent 0) (debug t))
  `(with-current-buffer (contexture--asking-buffer)
     (with-current-buffer (if contexture-context (current-buffer)
                            (contexture--base-buffer))
       ,@body)))

(defun contexture--fixed-context ()
  "Return the context that an option sets for this buffer, or nil.
That is a name or a list of names, from `contexture-context' or from the
function in `contexture-add-to'."
  (or contexture-context
      (unless (memq contexture-add-to '(project buffer shared))
        (funcall contexture-add-to))))

(defun contexture--layers-key ()
  "Return the values on which the layers of this buffer depend, a list."
  (list buffer-file-name default-directory))

(defun contexture--known-layers ()
  "Return the layers of this buffer, or nil if they are not known yet.
This makes no call and runs no search, so a mode line can use it."
  (and (equal (car contexture--layers) (contexture--layers-key))
       (cdr contexture--layers)))

(defun contexture--layers ()
  "Return the layers of this buffer, plists from general to specific."
  (or (and (consp contexture-context) (contexture--layers-named contexture-context))
      (contexture--known-layers)
      (contexture--note-layers
       (current-buffer) (contexture--layers-key)
       (contexture--ask 'open-layers (contexture--place-params)))))

(defun contexture--with-layers (function &optional failure gone)
  "Call FUNCTION without arguments as soon as this buffer's layers are known.
Emacs does not wait.  If they cannot be known, call FAILURE with the error,
or show that by default.  If the buffer was killed meanwhile, call GONE, if
given, with the result of `open-layers' instead."
  (contexture--in-asking-buffer
    (if (or (contexture--fixed-context) (contexture--known-layers))
        (funcall function)
      (let ((buffer (current-buffer))
            (key (contexture--layers-key)))
        (contexture--request-patiently
         'open-layers (contexture--place-params)
         :success (lambda (opened)
                    (if (buffer-live-p buffer)
                        (with-current-buffer buffer
                          (contexture--note-layers buffer key opened)
                          (funcall function))
                      (when gone (funcall gone opened))))
         :error (or failure #'contexture-show-error))))))

(defun contexture--asks-layer-p ()
  "Return non-nil if the user wants to choose the layer in this command."
  (cond ((memq this-command contexture--choosing-layer) current-prefix-arg)
        ((memq this-command contexture--choosing-layer-twice)
         (equal current-prefix-arg '(16)))))

(defun contexture--own-prefix ()
  "Return the prefix argument, or nil if it only means to ask for the layer."
  (unless (equal current-prefix-arg '(16)) current-prefix-arg))

(defun contexture--place-params ()
  "Return the parameters of `open-layers' for this buffer.
If the buffer had items before it got a file, they name both, so that the
server moves the items to the layer of the file."
  (let* ((file (and buffer-file-name (expand-file-name buffer-file-name)))
         (root (contexture--project-root))
         (folder (expand-file-name (if file (file-name-directory file)
                                     default-directory))))
    `(,@(if-let* ((root (or root (contexture--remote-root)))) (list :root root)
          (list :directory folder))
      ,@(and file (list :filename file))
      ,@(when (or (not file) contexture--buffer-number)
          (pcase-let ((`(,name . ,number) (contexture--numbered-buffer)))
            (list :buffer name :number number))))))

(defun contexture--emacs-number ()
  "Return a string that identifies this Emacs."
  (or contexture--emacs-number
      (setq contexture--emacs-number
            (format "%s-%x-%06x" (format-time-string "%s") (emacs-pid)
                    (random #x1000000)))))

(defun contexture--numbered-buffer ()
  "Return (NAME . NUMBER) of this buffer, both strings.
NAME is the buffer's name when this was first called.  No other buffer of any
Emacs has the same NUMBER."
  (unless contexture--buffer-number
    (setq contexture--buffer-number
          (cons (buffer-name)
                (format "%s.%d" (contexture--emacs-number)
                        (cl-incf contexture--buffer-count))))
    (add-hook 'after-set-visited-file-name-hook #'contexture--got-file nil t))
  contexture--buffer-number)

(defun contexture--got-file ()
  "Have the server move this buffer's items to the layer of its new file."
  (when (and buffer-file-name (contexture-running-p))
    (contexture--with-layers #'ignore #'ignore)))

(put 'contexture--got-file 'permanent-local-hook t)

(defun contexture--note-layers (buffer key opened)
  "Keep the layers in OPENED, a result of `open-layers', for BUFFER; return them.
KEY is the value of `contexture--layers-key' for which they are valid."
  (let ((layers (plist-get opened :layers)))
    (dolist (layer layers)
      (puthash (plist-get layer :manager) (plist-get layer :label)
               contexture--labels)
      (contexture--note-totals (plist-get layer :manager) layer))
    (when (or (plist-get opened :taken-over) (plist-get opened :elsewhere))
      (contexture--tell-opened-layers opened))
    (with-current-buffer buffer
      (setq contexture--layers (cons key layers)))
    layers))

(defun contexture--forget-layers ()
  "Let all buffers ask for their layers again: some may have new names."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when contexture--layers (setq contexture--layers nil)))))

(defun contexture--layer (layers &rest kinds)
  "Return the context of the first of LAYERS that is of one of KINDS, or nil."
  (plist-get (cl-find-if (lambda (layer) (memq (plist-get layer :layer) kinds))
                         layers)
             :manager))

;;;; Which context

(defun contexture-adding-context ()
  "Return the name of the context to which commands in this buffer add."
  (contexture--in-asking-buffer
    (let ((fixed (contexture--fixed-context)))
      (cond ((stringp fixed) fixed)
            ((contexture--asks-layer-p)
             (let* ((layers (contexture--layers))
                    (usual (contexture--layer-to-add layers))
                    (names (mapcar (lambda (layer)
                                     (cons (contexture--visible (plist-get layer :label))
                                           (plist-get layer :manager)))
                                   layers))
                    (default (car (rassoc usual names)))
                    (chosen (completing-read (format-prompt "Add to" default)
                                             (mapcar #'car names) nil t nil nil default)))
               (cdr (assoc chosen names))))
            ((eq contexture-add-to 'shared) contexture--shared)
            (t (contexture--layer-to-add (contexture--layers)))))))

(defun contexture--layers-named (names)
  "Return the layers, plists, of a conversation whose contexts have NAMES.
The last of NAMES is the conversation's own context."
  (cl-loop for (name . more) on names
           collect (list :manager name
                         :label (gethash name contexture--labels name)
                         :layer (cond ((equal name contexture--shared) :everywhere)
                                      (more :project)
                                      (t :conversation)))))

(defun contexture--layer-to-add (layers)
  "Return the name of the context among LAYERS to which commands add.
`contexture-add-to' chooses it."
  (or (and (not (eq contexture-add-to 'buffer)) (contexture--layer layers :project))
      (contexture--layer layers :file :buffer :conversation)))

(defun contexture-current-context ()
  "Return the name of this buffer's context, or the list of all its layers.
The layers are in order, from general to specific."
  (contexture--in-asking-buffer
    (or (contexture--fixed-context)
        (contexture--pluck :manager (contexture--layers)))))

(defun contexture--conversation-context ()
  "Return the contexts, a name or a list, whose items a new conversation sends.
They are those of this buffer without the one of its file.  Return nil if a
new conversation has only items of its own; see
`contexture-conversation-own-context'."
  (unless (bound-and-true-p contexture-conversation-own-context)
    (contexture--in-asking-buffer
      (or (contexture--fixed-context)
          (contexture--pluck
           :manager (cl-remove-if-not (lambda (layer)
                                        (memq (plist-get layer :layer) '(:everywhere :project)))
                                      (contexture--layers)))))))

(defun contexture--known-context ()
  "Return the value of `contexture-current-context', but ask no server for it.
Return nil if the layers are not known yet."
  (contexture--in-asking-buffer
    (or (contexture--fixed-context)
        (contexture--pluck :manager (contexture--known-layers)))))

(defun contexture--context-params (context)
  "Return the parameter that names CONTEXT, one name or a list of layers.
An empty list is a vector, as the server takes nil for a list left out."
  (if (listp context) (list :managers (or context [])) (list :manager context)))

(defun contexture--of-context-p (manager context)
  "Return non-nil if MANAGER, a name, is CONTEXT or one of its layers."
  (if (listp context) (member manager context) (equal manager context)))

(defun contexture--project-root ()
  "Return the absolute name of the root of this buffer's project, or nil.
Remote directories are not searched, since that may take long."
  (unless (contexture-outside--taken-p default-directory)
    (or (gethash default-directory contexture--project-roots)
        (when-let* ((project (contexture--project)))
          (puthash default-directory (expand-file-name (project-root project))
                   contexture--project-roots)))))

(defun contexture--project ()
  "Return the project around `default-directory', in the form of Emacs, or nil.
Emacs would evaluate what the folder's .dir-locals.el says, without asking."
  (let ((enable-dir-local-variables nil))
    (and (contexture--readable-git-p) (project-current))))

(defun contexture--readable-git-p ()
  "Return non-nil if Emacs can read the nearest .git around `default-directory'.
It does so to tell a submodule.  There may be none."
  (let* ((folder (locate-dominating-file default-directory ".git"))
         (true (and folder (contexture--inertly
                             (ignore-errors (file-truename (concat folder ".git")))))))
    (or (null folder)
        (and true
             (contexture-outside--plain-p true)
             (or (file-in-directory-p true folder) (contexture-outside--safe-p true))))))

(defvar contexture--remote-roots (make-hash-table :test #'equal)
  "Hash table from folders on other machines to the roots of their projects.
The value is nil for a folder that is in no project.")

(defconst contexture--remote-root-script
  "d=$PWD; while :; do for m in .git .hg .svn .project; do \
[ -e \"$d/$m\" ] && printf %s \"$d\" && exit 0; done; \
[ -n \"${d%/}\" ] || exit 1; d=${d%/*}; done"
  "Script for a shell that prints the root of the project around its folder.")

(defun contexture--remote-root ()
  "Return the root of this buffer's project if that is on another machine.
The machine is asked once for each folder, in one exchange, and only over a
connection that is open already."
  (when (contexture--remote-p default-directory)
    (let ((known (gethash default-directory contexture--remote-roots 'unknown)))
      (cond ((not (eq known 'unknown)) known)
            ((and (not non-essential) (file-remote-p default-directory nil t))
             (puthash default-directory (contexture--ask-remote-root)
                      contexture--remote-roots))))))

(defun contexture--ask-remote-root ()
  "Ask the machine of `default-directory' for the root of its project."
  (when-let* ((root (contexture--ask-machine contexture--remote-root-script)))
    (file-name-as-directory (concat (file-remote-p default-directory) (contexture--trim root)))))

(defun contexture--ask-machine (script &rest arguments)
  "Return what SCRIPT, for a shell, prints on the machine of `default-directory'.
It runs in that folder with ARGUMENTS, strings, in one exchange, and only over
a connection that is open.  Return nil if none is, or if the script fails."
  (when (file-remote-p default-directory nil t)
    (with-temp-buffer
      (let ((non-essential t)           ; else the connection would be made again
            (folder default-directory))
        (setq default-directory folder)
        (and (eql 0 (with-local-quit    ; also in a timer
                      (ignore-errors (apply #'process-file "/bin/sh" nil t nil "-c" script "sh"
                                            arguments))))
             (buffer-string))))))

(defun contexture--connected-folder (folder)
  "Return FOLDER, on another machine, or signal an error if none is connected."
  (unless (file-remote-p folder nil t)
    (contexture--user-error "There is no connection to %s; open one of its files first"
                            (file-remote-p folder)))
  folder)

(defun contexture--project-buffers (root)
  "Return the buffers of files below ROOT, the last used first.
On another machine, the names count as they are, since asking takes long."
  (let ((remote (contexture--remote-p root)))
    (cl-remove-if-not (lambda (buffer)
                        (when-let* ((file (buffer-file-name buffer)))
                          (if remote (string-prefix-p root file)
                            (and (not (contexture-outside--taken-p file))
                                 (file-in-directory-p file root)))))
                      (buffer-list))))

;;;; Labels

(defun contexture--project-label (project)
  "Return a short label for PROJECT, a folder, such as \"project gptel\"."
  (concat "project "
          (truncate-string-to-width
           (contexture--visible
            (if (equal project "/") project (contexture--last-name project)))
           20 nil nil "…")))

(defun contexture--same-project-p (one other)
  "Return non-nil if ONE and OTHER, folders or nil, are the same project."
  (contexture--inertly
    (equal (and one (directory-file-name one))
           (and other (directory-file-name other)))))

(defconst contexture--longest-label 100
  "Maximum width of the label of a context, in columns.")

(defun contexture--label (context)
  "Return a phrase for CONTEXT, one name or a list of layers, for messages."
  (cond ((null context) "this buffer")
        ((listp context)
         (contexture--label (or (cadr context) (car context))))
        ((equal context contexture--shared) "the shared context")
        ((gethash context contexture--labels)
         (contexture--cut (gethash context contexture--labels) contexture--longest-label))
        ((string-match "\\`project:\\(.+\\)" context)
         (contexture--project-label (match-string 1 context)))
        (t (concat (cond ((get-buffer context) "buffer ")
                         ((string-suffix-p "/" context) "project ")
                         (t ""))
                   (contexture--cut context contexture--longest-label)))))

(defun contexture--note-labels (entries)
  "Record the labels in ENTRIES, contexts that the server lists; return ENTRIES."
  (dolist (entry entries entries)
    (when-let* ((label (plist-get entry :label)))
      (unless (gethash (plist-get entry :manager) contexture--labels)
        (puthash (plist-get entry :manager) label contexture--labels)))))

(defun contexture--capitalized (text)
  "Return TEXT with its first letter as a capital, and the rest as it is."
  (concat (upcase (substring text 0 1)) (substring text 1)))

;;; Mark what a language model should see

(defgroup contexture nil
  "Choose and keep what a language model sees."
  :group 'tools
  :group 'convenience
  :prefix "contexture-"
  :link '(url-link "https://github.com/contexture/contexture"))

(defcustom contexture-sync-hosts nil
  "Hosts of remote files, and whether to exchange with each by itself.
With those that have a non-nil value, opening a file there begins what
`contexture-sync' does, at most once in ten minutes.  Hosts in the list
are not asked about again."
  :type '(alist :key-type (string :tag "Host") :value-type (boolean :tag "By itself"))
  :group 'contexture
  :risky t
  :package-version '(contexture . "0.1.0"))

(defvar contexture--last-manager nil
  "Name of the context to which a command of this Emacs added last, or nil.")

(defvar contexture--last-changed nil
  "Name of the context that a command of this Emacs changed last, or nil.")

(defvar contexture--stale-and-unsent (make-hash-table :test #'equal)
  "Hash table from contexts, names or lists of layers, to (STALE . UNSENT).
STALE is the number of stale items.  UNSENT is by how many tokens the size
that the server reports is larger than what this Emacs sends: some items are
sent only as parts of others, and another editor may have other texts.")

(defvar contexture--totals (make-hash-table :test #'equal)
  "Hash table from a context's name to its size, as last reported.
A size is (ITEMS TOKENS VERSION); VERSION is the context's version then.")

(defun contexture--size (items tokens)
  "Return a phrase for the size of a context: ITEMS and TOKENS, numbers."
  (format "%s, %s" (contexture--count (or items 0) "item")
          (contexture--count (or tokens 0) "token")))

;;;; What to send

(defvar-local contexture--copied-as nil
  "Name that this buffer, which visits no file, had when all of it was last added.")
(put 'contexture--copied-as 'permanent-local t)

(defun contexture--copied-before-as ()
  "Return metadata with the other name under which this buffer was added before.
Note that it was added under the name that it has.  If another buffer has the
other name now, return nil: copies under that name count as that buffer's."
  (with-current-buffer (contexture--base-buffer)
    (let ((before contexture--copied-as))
      (setq contexture--copied-as (buffer-name))
      (and before (not (get-buffer before)) (list :buffer-was before)))))

(defun contexture--capture (beg end origin &rest metadata)
  "Return parameters of `add-item' for the text from BEG to END in this buffer.
ORIGIN, a keyword such as `:region', says how the text was chosen; METADATA
are further facts, keywords and values.  Signal an error if the text must
not be added."
  (when (string-prefix-p "*contexture: " (buffer-name))
    (user-error "This is one of Contexture's own buffers; add text from the buffer that it comes from"))
  (when (minibufferp)
    (user-error "Leave the minibuffer first; its text cannot be added"))
  (let* ((file (buffer-file-name (contexture--base-buffer)))
         (live (and file (not (plist-get metadata :start-column))))
         (text (buffer-substring-no-properties beg end))
         (text (contexture--check-text (if file text (contexture--plain-text text)))))
    (when live (contexture-live--captured text beg end))
    `(:type ,(cond ((eq origin :file) :file)
                   ((derived-mode-p 'prog-mode) :code)
                   (t :text))
      :content ,text
      :metadata (,@(contexture--buffer-metadata)
                 ,@(cond ((not (contexture--whole-p beg end origin))
                          (contexture--lines beg end))
                         ((null file) (contexture--copied-before-as)))
                 :origin ,origin
                 ,@(and (contexture--partial-p beg end) '(:partial t))
                 ,@(apply #'contexture--plist
                          :package (contexture--lisp-package beg) metadata)
                 ;; A rectangle, or a buffer without a file, is no text to follow.
                 ,@(if live (and (contexture-live--held-p) '(:unsaved t))
                     (contexture--as-of)))
      ,@(and live '(:live t)))))

(defun contexture--skip-escape ()
  "Move over what controls a terminal after an escape; return nil if it is text."
  (let ((start (point)))
    (cond ((and (memq (char-after) '(?\] ?P ?X ?^ ?_)) ; titles, links
                (progn (skip-chars-forward (if (eq (char-after) ?\]) "^\a\e" "^\e"))
                       (looking-at-p "\a\\|\e\\\\")))
           (forward-char (if (eq (char-after) ?\a) 1 2))
           t)
          (t
           (goto-char start)
           (let ((colours (eq (char-after) ?\[))) ; or moves
             (when colours
               (forward-char)
               (skip-chars-forward "0-?"))
             (skip-chars-forward " -/")
             (cond ((looking-at-p (if colours "[@-~]" "[0-~]")) (forward-char) t)
                   (colours (goto-char (1+ start)) t)))))))

(defun contexture--plain-text (text)
  "Return TEXT, written by a program, without what controls a terminal.
A line may be very long, so no regexp matches more than a few characters."
  (if (not (string-match-p "[\e\b\r]" text)) text
    (with-temp-buffer
      (insert text)
      (goto-char (point-min))
      (while (search-forward "\e" nil t)
        (let ((beg (1- (point))))
          (when (contexture--skip-escape) (delete-region beg (point)))))
      (goto-char (point-min))
      (while (search-forward "\b" nil t)
        (let ((beg (- (point) 2)))      ; overstruck
          (unless (memq (char-after beg) '(nil ?\n)) (delete-region (max 1 beg) (point)))))
      (goto-char (point-min))
      (while (search-forward "\r" nil t)
        (let ((beg (1- (point))))
          (skip-chars-forward "\r")
          (pcase (char-after)
            ('nil)
            (?\n (delete-region beg (point)))
            ;; Drawn over, as a progress bar is.
            (_ (delete-region (line-beginning-position) (point))))))
      (buffer-string))))

(defun contexture--check-text (text)
  "Return TEXT, from this buffer; signal an error if it is binary data.
Like the server, take a text with a NUL character for binary data."
  (if (string-search "\0" text)
      (contexture--user-error "%s is a picture or other binary data, which is not sent"
                              (buffer-name))
    text))

(defun contexture--as-of ()
  "Return the metadata, a plist, that say that a text is as of now.
They are for texts that do not follow their source."
  (list :as-of (truncate (float-time))))

(defun contexture--buffer-metadata ()
  "Return the metadata that each text in this buffer has, as a plist."
  (let* ((base (contexture--base-buffer))
         (file (buffer-file-name base))
         (mode (symbol-name major-mode)))
    (contexture--plist
     :filename (and file (contexture--true-name (expand-file-name file)))
     :project (if-let* ((root (contexture--project-root)))
                  (contexture--true-name root)
                (contexture--remote-root))
     :buffer (buffer-name base)
     :mode mode
     :language (and (not (eq major-mode 'fundamental-mode)) mode)
     :modified (and file (buffer-modified-p base)))))

(defun contexture--true-name (file)
  "Return FILE, a file or folder of this machine, as its project knows it.
If links lead to the project, that is its name without links."
  (let ((root (and (not (contexture--remote-p file)) (contexture--project-root))))
    (if (or (null root) (equal root (contexture--true-root root))) file
      (contexture--inertly (file-truename file)))))

(defun contexture--true-root (root)
  "Return the name of ROOT, the root of a project, without links."
  (or (gethash (cons root nil) contexture--project-roots)
      (puthash (cons root nil) (contexture--inertly (file-truename root))
               contexture--project-roots)))

(defun contexture--lines (beg end)
  "Return the first and last line of the text from BEG to END, as a plist.
They are counted in the whole buffer.  If END is at the start of a line, the
last line is the one before."
  (list :start-line (line-number-at-pos beg t)
        :end-line (line-number-at-pos
                   (if (and (> end beg) (eq (char-before end) ?\n)) (1- end) end)
                   t)))

(defun contexture--whole-p (beg end origin)
  "Return non-nil if BEG to END is a whole buffer, and ORIGIN says so.
A region does not count, even if it is the whole buffer.  The item of a whole
buffer records no lines, and is refreshed as a whole."
  (and (memq origin '(:file :buffer))
       (contexture--widened
         (and (= beg (point-min)) (= end (point-max))))))

(defun contexture--partial-p (beg end)
  "Return non-nil if the text from BEG to END does not consist of whole lines.
The server then also looks for it within lines."
  (contexture--widened
    (not (and (progn (goto-char beg) (bolp))
              (progn (goto-char end) (or (bolp) (eolp)))))))

(defun contexture--lisp-package (position)
  "Return the name of the Common Lisp package in force at POSITION, or nil."
  (when (derived-mode-p 'lisp-mode)
    (save-excursion
      (goto-char position)
      (save-match-data
        (when (re-search-backward
               "^(\\(?:[a-z-]+:+\\)?in-package[ \t\n]+[#:\"]*\\([^])\" \t\n]+\\)" nil t)
          (match-string-no-properties 1))))))

(defun contexture--description (metadata)
  "Return a phrase for what a text with METADATA is, with its source."
  (concat (pcase (plist-get metadata :origin)
            (:diff "the diff of ")
            (:diagnostic "the diagnostics of ")
            (:repl "the interaction in ")
            (:inspector "what is in ")
            (:debugger (if (plist-get metadata :start-line) "the error at "
                         "the error of "))
            (:compilation
             (let ((match (equal (plist-get metadata :mode) "grep-mode")))
               (if (plist-get metadata :start-line)
                   (if match "the match at " "the error at ")
                 (if match "the matches of " "the errors of ")))))
          (let ((symbol (plist-get metadata :symbol))
                (source (contexture--source metadata)))
            (if (and symbol (eq (plist-get metadata :origin) :symbol)
                     (not (equal symbol source)))
                (contexture--format "%s (%s)" symbol source)
              source))))

(defun contexture--source (metadata)
  "Return the source of a text with METADATA: file or buffer, and lines."
  (let ((place (contexture--place metadata))
        (start (plist-get metadata :start-line))
        (end (plist-get metadata :end-line)))
    (cond ((null start) place)
          ((plist-get metadata :start-column)
           (format "%s:%d-%d columns %d-%d" place start end
                   (plist-get metadata :start-column)
                   (plist-get metadata :end-column)))
          ((or (null end) (eql start end)) (format "%s:%d" place start))
          (t (format "%s:%d-%d" place start end)))))

(defun contexture--place (metadata)
  "Return the file, or else the buffer, in METADATA, as text to show.
A file is relative to its project, if it is in one."
  (contexture--visible
   (if-let* ((file (plist-get metadata :filename)))
       (let* ((project (plist-get metadata :project))
              (root (and project (contexture--inertly (file-name-as-directory project)))))
         (if (and root (string-prefix-p root file))
             (substring file (length root))
           (contexture--abbreviate file)))
     (or (plist-get metadata :buffer) (plist-get metadata :symbol)
         (if (eq (plist-get metadata :origin) :kill) "killed text" "text")))))

(defun contexture--name (name)
  "Return NAME, a keyword, string or nil from the server, as text."
  (if name (string-trim-left (format "%s" name) ":") ""))

(defvar contexture--conflicts nil
  "Files with items that changed on disk under unsaved edits.
Each is (NAME . MANAGERS), with the contexts that have the items.")

(defun contexture--item-state (item)
  "Return the word for the state of ITEM, as users see it.
The word is not the server's for text that was never saved, which cannot match
its file, for a file that changed under unsaved edits, and for files on other
machines, at which the server cannot look."
  (let ((state (or (plist-get item :state) :fresh))
        (metadata (plist-get item :metadata)))
    (cond ((contexture--remote-p (or (plist-get metadata :filename) ""))
           (if (plist-get metadata :stale) "changed" "remote"))
          ((contexture--conflict-p item) "changed")
          ;; The server also reports stale for a file that was written just before.
          ((if (plist-get metadata :unsaved) ; a live item
               (and (eq state :fresh) (plist-get metadata :modified))
             (and (memq state '(:fresh :stale))
                  (contexture--item-unsaved-p metadata (plist-get item :timestamp))))
           "unsaved")
          (t (pcase state
               (:fresh "current")
               (:stale "changed")
               (:missing "gone")
               (_ (contexture--name state)))))))

(defun contexture--part-name (part)
  "Return the words for PART, a keyword for a part of what is sent."
  (pcase part
    (:tool-schemas "tools")
    (:system-prompt "instructions")
    (:design-document "design")
    (:type-definitions "types")
    (:current-unit "code in progress")
    (:relevant-tests "tests")
    (:implementation "code of the tests")
    (:context-items "items")
    (:previous-units "earlier code")
    (:grounding "memories")
    (_ (contexture--name part))))

(defun contexture--conflict-p (item)
  "Return non-nil if ITEM's file changed on disk under unsaved edits.
A copy follows no file."
  (and (plist-get item :live)
       (assoc (plist-get (plist-get item :metadata) :filename) contexture--conflicts)))

(defun contexture--item-unsaved-p (metadata timestamp)
  "Return non-nil if the item with METADATA is text that was never saved.
It was never saved if it was not when it was taken, at TIMESTAMP, and
its file has not been written since."
  (and (plist-get metadata :modified)
       (let* ((file (contexture--outside-file (plist-get metadata :filename)))
              (attributes (and file (file-attributes file))))
         (not (and attributes
                   (time-less-p (1+ timestamp) ; it is in whole seconds
                                (file-attribute-modification-time attributes)))))))

;;;; Adding

(defun contexture--add (params &optional method then)
  "Call METHOD with PARAMS to add something to this buffer's context.
METHOD is `add-item' by default.  Then show a message or, if THEN is given,
call THEN with the name of the context and the item.  Ask before a secret
is added, and if the server cannot read a file, let Emacs decode it."
  (let ((call (contexture--asked-call (cons (or method 'add-item) params))))
    (contexture--with-adding-context
     (lambda (manager) (contexture--send-addition manager call then)))))

(defun contexture--with-adding-context (function)
  "Call FUNCTION with the context to which this buffer adds, once that is known.
Emacs does not wait.  Text that was taken from a buffer is added even if
the buffer is killed meanwhile."
  (let* ((command this-command)
         (prefix current-prefix-arg)
         (add-to contexture-add-to)
         (add (lambda ()
                (let* ((this-command command)
                       (current-prefix-arg prefix)
                       (manager (contexture-adding-context)))
                  (setq contexture--last-manager manager
                        contexture--last-changed manager)
                  (funcall function manager)))))
    (contexture--with-layers
     add nil
     (lambda (opened)
       (with-temp-buffer
         (setq-local contexture-add-to add-to)
         (contexture--note-layers (current-buffer) (contexture--layers-key) opened)
         (funcall add))))))

(defun contexture--send-addition (manager call then)
  "Make CALL, a pair (METHOD . PARAMS), which adds an item to MANAGER.
THEN is as in `contexture--add'."
  (pcase-let ((`(,method . ,params) call)
              (replaced nil))
    (contexture--request-patiently
     method `(:manager ,manager ,@params :brief t)
     :success (lambda (item)
                (contexture-live--added manager item (plist-get params :content))
                (if then (funcall then manager item)
                  (contexture--tell-added manager item replaced)))
     :error (lambda (problem)
              ;; A question must not be asked while output of a process is read.
              (contexture--later
               (lambda ()
                 (condition-case refusal
                     (if-let* ((other (contexture--otherwise call problem)))
                         (contexture--send-addition manager other then)
                       (contexture--tell-refused manager problem))
                   (user-error (contexture--tell-refused
                                manager (list :message (cadr refusal)))))))))
    (setq replaced contexture--last-replaced)))

;;;; Secrets

(defconst contexture--secret-names
  '("*.age" "*.asc" "*.env" "*.gpg" "*.jks" "*.kdb" "*.kdbx" "*.key" "*.keystore"
    "*.kubeconfig" "*.ovpn" "*.p12" "*.p8" "*.pem" "*.pfx" "*.pgp" "*.pkcs12" "*.ppk"
    "*.tfvars" "*.tfvars.json" "*_dsa" "*_ecdsa" "*_ed25519" "*_key" "*_rsa" ".boto"
    ".dev.vars*" ".dockercfg" ".env*" ".flaskenv" ".git-credentials" ".htpasswd"
    ".my.cnf" ".mylogin.cnf" ".npmrc" ".pgpass" ".pypirc" ".s3cfg" ".sentryclirc"
    ".terraformrc" ".vault-token" ".vault_pass*" ".yarnrc.yml" "_netrc"
    "application_default_credentials.json" "auth.json" "authinfo" "credentials"
    "credentials.*" "kubeconfig" "kubeconfig.yaml" "kubeconfig.yml" "local.settings.json"
    "netrc" "rclone.conf" "secrets.json" "secrets.toml" "secrets.yaml" "secrets.yml"
    "service-account*" "terraform.tfstate" "terraform.tfstate.*" "wp-config.php")
  "Globs for names of files that usually hold passwords, keys or tokens.
They are in lower case; a star is only at the beginning or the end.  The
server has the same lists.")

(defconst contexture--secret-examples
  '(".dist" ".example" ".sample" ".template")
  "Ends of the names of examples, which hold no secrets.")

(defconst contexture--secret-copies
  '("~" "#" ".bak" ".old" ".orig" ".save" ".swp")
  "Ends that editors and people add to the names of copies.")

(defconst contexture--secret-folders
  '("*.git" ".aws" ".azure" ".docker" ".gnupg" ".kube" ".password-store" ".ssh")
  "Globs for names of folders whose files hold secrets.
A repository without a work tree is in a folder called NAME.git.")

(defconst contexture--secret-regexp
  (mapconcat #'wildcard-to-regexp contexture--secret-names "\\|")
  "Regexp for the names of files that usually hold secrets.")

(defconst contexture--secret-example-regexp
  (concat "\\(?:" (mapconcat #'regexp-quote contexture--secret-examples "\\|") "\\)\\'")
  "Regexp for the names of examples.")

(defconst contexture--secret-copy-regexp
  (concat "\\(?:" (mapconcat #'regexp-quote contexture--secret-copies "\\|") "\\)\\'")
  "Regexp for the names of copies.")

(defconst contexture--secret-folder-regexp
  (concat "\\(?:\\`\\|/\\)\\(?:"
          (string-replace "\\*" "[^/]*"
                          (mapconcat #'regexp-quote contexture--secret-folders "\\|"))
          "\\)/")
  "Regexp for the names of files in folders of secrets.")

(defvar auth-sources)

(defun contexture--secret-name-p (name)
  "Return non-nil if NAME, of a file, is in `contexture--secret-names'.
NAME is without a folder, in lower case.  A copy has the name of its original,
perhaps with a dot before it."
  (let ((case-fold-search nil))
    (setq name (string-remove-prefix "#" name))
    (while (string-match contexture--secret-copy-regexp name)
      (setq name (replace-regexp-in-string "\\.~[0-9]*\\'" ""
                                           (substring name 0 (match-beginning 0)))))
    (and (not (string-match-p contexture--secret-example-regexp name))
         (or (string-match-p contexture--secret-regexp name)
             (string-match-p contexture--secret-regexp (string-remove-prefix "." name))))))

(defun contexture--secret-file-p (file)
  "Return non-nil if FILE, a name or nil, usually holds secrets.
FILE is absolute, or relative to the folder of a project."
  (when file
    (contexture--inertly
      (let ((name (downcase file))
            (case-fold-search nil))
        (or (contexture--secret-name-p (file-name-nondirectory name))
            (string-match-p contexture--secret-folder-regexp name)
            (cl-some (lambda (source)
                       (and (stringp source)
                            (string-suffix-p (file-name-nondirectory source) file)
                            (equal (expand-file-name source) file)))
                     (bound-and-true-p auth-sources)))))))

(defun contexture--confirm-secrets (names)
  "Ask whether to send what has NAMES, which look like secrets."
  (or (null names)
      (contexture--y-or-n-p
       (contexture--format "%s may hold passwords, keys or tokens.  Send %s to models? "
                           (contexture--some-of names) (if (cdr names) "them" "it")))))

(defun contexture--some-of (names)
  "Return a phrase for NAMES, a list of strings, of which it shows some."
  (let ((shown (seq-take names 5)))
    (concat (string-join shown ", ")
            (when (nthcdr 5 names) (format " and %d more" (- (length names) 5))))))

(defun contexture--call-file (call)
  "Return the file that CALL, a pair (METHOD . PARAMS), is about, or nil."
  (or (plist-get (cdr call) :path)
      (plist-get (plist-get (cdr call) :metadata) :filename)))

(defun contexture--asked-call (call)
  "Return CALL, a pair (METHOD . PARAMS), with the user's word on a secret.
Ask if the file looks like one; signal an error if the answer is no."
  (or (car (contexture--asked-calls (list call)))
      (contexture--user-error "Nothing added: %s may hold secrets"
                              (contexture--last-name (contexture--call-file call)))))

(defun contexture--asked-calls (calls)
  "Return those of CALLS, pairs (METHOD . PARAMS), that may be made.
Ask once about all files that look like secrets, and leave them out if the
answer is no."
  (let* ((secret (cl-remove-if-not
                  (lambda (call) (contexture--secret-file-p (contexture--call-file call)))
                  calls))
         (confirmed (contexture--confirm-secrets
                     (mapcar (lambda (call)
                               (contexture--last-name (contexture--call-file call)))
                             secret))))
    (cl-loop for call in calls
             for asked = (memq call secret)
             when (or confirmed (not asked))
             collect `(,(car call) ,@(cdr call) :secrets ,(if asked :add :ask)))))

;;;; What the server refuses

(defconst contexture--most-decoded (* 4 1024 1024)
  "Maximum size, in bytes, of a file that Emacs decodes for the server.")

(defun contexture--otherwise (call problem)
  "Return the call to make instead of CALL, which was refused, or nil.
PROBLEM is the error.  If the text looks like a secret, ask; if the file is
not UTF-8 text, it is decoded."
  (pcase (plist-get (plist-get problem :data) :kind)
    (:looks-secret
     (if (contexture--confirm-secrets
          (mapcar #'contexture--last-name (plist-get (plist-get problem :data) :names)))
         (contexture--with-secrets call)
       (user-error "It may hold secrets")))
    (:file-binary
     (when (eq (car call) 'add-file)
       (contexture--decoded-call (plist-get (cdr call) :path)
                                 (plist-get (cdr call) :start-line)
                                 (plist-get (cdr call) :end-line)
                                 (plist-get (cdr call) :secrets))))))

(defun contexture--with-secrets (call)
  "Return CALL as one that adds what may hold secrets."
  (cons (car call) (plist-put (copy-sequence (cdr call)) :secrets :add)))

(defun contexture--decoded-call (file start end secrets)
  "Return the call that adds FILE, or its lines START to END, as Emacs decodes it.
SECRETS is the parameter of that name.  Signal an error if it is no text."
  (let* ((size (or (file-attribute-size (file-attributes file)) 0))
         (buffer (find-buffer-visiting file))
         (params
          (cond (buffer (contexture--capture-file buffer start end))
                ((> size contexture--most-decoded)
                 (contexture--refuse-to-decode file "%s" size))
                (t (contexture--capture-decoded file start end)))))
    `(add-item ,@params :secrets ,(or secrets :ask))))

(defun contexture--refuse-to-decode (file format size)
  "Signal an error that FILE has SIZE bytes, too many; FORMAT takes the size."
  (contexture--user-error "%s has %s, too much to decode here; visit it and mark a part"
                          (contexture--abbreviate file)
                          (format format (file-size-human-readable size 'si " " "B"))))

(defun contexture--capture-decoded (file start end)
  "Return parameters of `add-item' for FILE, or its lines START to END.
Emacs reads and decodes FILE."
  (with-temp-buffer
    ;; A small file can unpack to a very long text.
    (contexture--insert-file file (1+ contexture--most-decoded))
    (when (> (position-bytes (point-max)) contexture--most-decoded)
      (contexture--refuse-to-decode file "more than %s" contexture--most-decoded))
    (when (save-excursion (goto-char (point-min)) (search-forward "\0" nil t))
      (contexture--user-error "%s is a picture or other binary data, which is not sent"
                              (contexture--abbreviate file)))
    (let ((params (contexture--capture-file (current-buffer) start end)))
      (list :type :file
            :content (plist-get params :content)
            :metadata (append (contexture--plist
                               :filename file
                               :project (contexture--root-of file)
                               :language (contexture--file-mode file))
                              (contexture--select (plist-get params :metadata)
                                                  '(:start-line :end-line :origin)))
            :live t))))

(defun contexture--root-of (file)
  "Return the root of the project of FILE, or nil."
  (let ((default-directory (contexture--inertly (file-name-directory file))))
    (contexture--project-root)))

(defun contexture--tell-added (manager item replaced)
  "Show a message that ITEM was added to the context MANAGER.
REPLACED is the number of its characters that were replaced."
  (contexture--with-size
   manager item
   (lambda (size)
     (contexture--message "Added %s to %s (%s)%s%s%s%s"
              (contexture--description (plist-get item :metadata))
              (contexture--label manager)
              size
              (contexture--repeat-text item)
              (contexture--evicted-text (length (plist-get item :evicted)))
              (when (> replaced 0)
                (concat "; " (contexture--replaced-text replaced)))
              (when-let* ((reason (plist-get (plist-get item :metadata) :stale)))
                (concat "; changed: " (contexture--visible reason)))))))

(defun contexture--evicted-text (evicted)
  "Return a phrase for EVICTED items that left a full context, or nil for none.
EVICTED is their number."
  (when (> evicted 0)
    (format "; the context is full, so %s left it" (contexture--oldest evicted))))

(defun contexture--oldest (number)
  "Return a phrase for the NUMBER oldest items."
  (if (= number 1) "the oldest item" (format "the oldest %d items" number)))

(defun contexture--repeat-text (item)
  "Return a phrase for the part of ITEM that was there before, or \"\"."
  (let ((absorbed (length (plist-get item :absorbed)))
        (covers (length (plist-get item :covers))))
    (concat
     (pcase (plist-get item :repeat)
       (:same "; it was already there, and now comes last")
       (:replaced "; it replaces the earlier copy")
       (:extended
        (if (> absorbed 0)
            (format "; it is joined with %d items that were there" (1+ absorbed))
          "; it extends an item that was there")))
     (and (plist-get item :covered-by)
          "; another item contains it, so it is sent only once")
     (and (> covers 0)
          (contexture--format "; %s %s sent as a part of it"
                              (contexture--count covers "other item")
                              (if (= covers 1) "is" "are"))))))

(defun contexture--tell-refused (manager problem)
  "Show a message that nothing was added to the context MANAGER.
PROBLEM is the error of the call."
  (contexture--message "Nothing added to %s: %s" (contexture--label manager)
           (contexture--error-text problem)))

(defun contexture--note-totals (manager answer)
  "Record the size of the context MANAGER that ANSWER reports.
ANSWER is a plist from the server.  Answers and notifications can arrive in
any order, so ignore one about an earlier version than that recorded."
  (let ((version (plist-get answer :version)))
    (unless (< (or version 0)
               (or (nth 2 (gethash manager contexture--totals)) 0))
      (puthash manager
               (list (or (plist-get answer :count) (plist-get answer :items))
                     (or (plist-get answer :total-tokens)
                         (plist-get answer :tokens))
                     version)
               contexture--totals)
      (force-mode-line-update t))))

(defun contexture--with-size (manager answer function)
  "Call FUNCTION with a phrase for the size of the context MANAGER.
ANSWER, from the server, reports it, but includes the tokens of covered
items, which are not sent.  If there may be such items, fetch the items
first."
  (contexture--note-totals manager answer)
  (let* ((context (contexture--known-context))
         (context (if (contexture--of-context-p manager context) context manager))
         (size (contexture--size (plist-get answer :count)
                                 (or (plist-get answer :total-tokens)
                                     (plist-get answer :tokens)))))
    (if (contexture--nothing-covered-p manager answer)
        (funcall function size)
      (contexture-request-async
       'list-items (append (contexture--context-params context) '(:brief t))
       :success
       (lambda (items)
         (contexture--note-items context items)
         (let ((own (if (stringp context) items
                      (cl-remove manager items :test-not #'equal
                                 :key (lambda (item) (plist-get item :manager))))))
           (funcall function (contexture--size (length own)
                                               (contexture--tokens-to-send own)))))
       :error (lambda (_) (funcall function size))))))

(defun contexture--nothing-covered-p (manager answer)
  "Return non-nil if it is known that MANAGER has no covered items.
ANSWER is what the server has just reported about this context."
  (or (<= (or (plist-get answer :count) 0) 1)
      (and (null (plist-get answer :covers))
           (null (plist-get answer :covered-by))
           (let ((known (cl-loop for context being the hash-keys
                                 of contexture--stale-and-unsent using (hash-values entry)
                                 when (contexture--of-context-p manager context)
                                 collect (cdr entry))))
             (and known (cl-every #'zerop known))))))

(defun contexture--note-items (context items)
  "Record how many of ITEMS are stale, and how many of their tokens are not sent.
ITEMS are all items of CONTEXT, a name or a list of layers, as this Emacs has
them."
  (let ((sizes (mapcar (lambda (manager) (nth 1 (gethash manager contexture--totals)))
                       (ensure-list context))))
    (puthash context
             (cons (cl-count-if (lambda (item) (plist-get (plist-get item :metadata) :stale))
                                items)
                   (- (if (memq nil sizes) (contexture--sum :tokens items) (apply #'+ sizes))
                      (contexture--tokens-to-send items)))
             contexture--stale-and-unsent)
    (force-mode-line-update t)))

;;;###autoload
(defun contexture-add-region (beg end &optional rectangle)
  "Add the text between BEG and END to this buffer's context.
Interactively, that is the region.  If RECTANGLE is non-nil, add the text of
the rectangle with these corners; interactively, do that if
`rectangle-mark-mode' is on."
  (interactive
   (cond ((contexture-sources--block-selection))
         ((or (use-region-p) (and (mark t) (not transient-mark-mode)))
          (list (region-beginning) (region-end)))
         (t (user-error "Mark a region first"))))
  (when (= beg end)
    (user-error "The region is empty"))
  (contexture--add (if rectangle (contexture-sources--capture-rectangle beg end)
                     (contexture--capture beg end :region)))
  (setq deactivate-mark t))

;;;###autoload
(defun contexture-add-buffer ()
  "Add the text of this buffer to the buffer's context.
Unsaved edits are included; under narrowing, only the visible text is."
  (interactive)
  (when (= (point-min) (point-max))
    (user-error "The buffer is empty"))
  (contexture--add (contexture--capture (point-min) (point-max) :buffer)))

;;;###autoload
(defun contexture-add-defun ()
  "Add the definition around point to this buffer's context.
Decorators, attributes and comments directly above it belong to it.  In Org
and Markdown, it is the source block or the section around point."
  (interactive)
  (let ((definition (or (contexture-defun-at-point)
                        (contexture--user-error "There is no definition around point%s"
                                    (if (derived-mode-p 'prog-mode) ""
                                      " that this major mode knows")))))
    (contexture--add
     (contexture--capture (plist-get definition :beg) (plist-get definition :end)
                          :defun
                          :symbol (plist-get definition :name)
                          :symbol-kind (plist-get definition :kind)))))

(defun contexture--defun-bounds ()
  "Return the bounds of the definition around point as a pair, or nil."
  (when-let* ((definition (contexture-defun-at-point)))
    (cons (plist-get definition :beg) (plist-get definition :end))))

;;;###autoload
(defun contexture-add-file (file &optional start end)
  "Add FILE, or its lines START to END, to this buffer's context.
The server reads the file, so its size does not matter to Emacs.  If a
buffer has unsaved edits of FILE, the buffer's text is added instead."
  (interactive
   (let ((file (buffer-file-name (contexture--base-buffer))))
     (list (read-file-name (format-prompt "Add file" (and file (contexture--visible
                                                                (file-name-nondirectory file))))
                           nil file t))))
  (let ((call (contexture--file-call file start end)))
    (contexture--add (cdr call) (car call))))

(defun contexture--file-call (file &optional start end)
  "Return the call, (METHOD . PARAMS), that adds FILE or its lines START to END."
  (let* ((file (expand-file-name file))
         (buffer (find-buffer-visiting file)))
    (cond ((file-directory-p file)
           (contexture--user-error "%s is a directory" (contexture--abbreviate file)))
          ;; The server cannot read unsaved text, nor one that is not UTF-8.
          ((and buffer (not (contexture--remote-p file))
                (with-current-buffer buffer (contexture-live--held-p)))
           (cons 'add-item (contexture--capture-file buffer start end)))
          ;; What a buffer has of a file on another machine follows it.
          ((and buffer (or (buffer-modified-p buffer) (contexture--remote-p file)))
           (cons 'add-item (contexture--capture-file buffer start end)))
          ((contexture--remote-p file)
           (cons 'add-item (contexture--capture-remote file start end)))
          (t
           `(add-file
             ,@(contexture--plist :path (let ((default-directory (file-name-directory file)))
                                          (contexture--true-name file))
                                  :start-line start :end-line end :live t)
             ,@(when-let* ((root (contexture--root-of file)))
                 (list :metadata (list :project root))))))))

(defun contexture--capture-file (buffer start end)
  "Return parameters of `add-item' for BUFFER, or its lines START to END.
BUFFER has the text of a file."
  (with-current-buffer buffer
    (contexture--widened
      (let ((beg (if start (contexture--line-position start) (point-min)))
            (end (if end (contexture--line-position (1+ end)) (point-max))))
        (contexture--capture beg end :file)))))

(defun contexture--line-position (line)
  "Go to the beginning of LINE, counted from 1, and return that position."
  (goto-char (point-min))
  (forward-line (1- line))
  (point))

(defun contexture--capture-remote (file start end)
  "Return parameters of `add-item' for FILE, or its lines START to END.
Emacs reads FILE, which is on another machine, where the server cannot."
  (with-temp-buffer
    (contexture--insert-file file)
    (let ((params (contexture--capture-file (current-buffer) start end)))
      (plist-put params :metadata
                 (append (contexture--plist
                          :filename file
                          :language (contexture--file-mode file))
                         (contexture--select (plist-get params :metadata)
                                             '(:start-line :end-line :origin :as-of)))))))

(defun contexture--file-mode (file)
  "Return the name of the major mode in which Emacs opens FILE, or nil."
  (when-let* ((mode (assoc-default file auto-mode-alist #'string-match)))
    (and (symbolp mode) (symbol-name mode))))

;;;; Using

(defun contexture--ask (method params)
  "Call METHOD with PARAMS, wait for the result, and return it.
Signal an error as `user-error', since it is not a bug."
  (condition-case problem
      (contexture-request method params)
    (contexture-error
     (contexture--user-error "Contexture: %s" (contexture--problem-text problem)))))

(defvar contexture-context-history nil
  "Minibuffer history of contexts.")

(defun contexture--read-manager (&optional ask)
  "Return a context that is not empty: a name, or a list of layers.
That is this buffer's context; if it is empty, or if ASK is non-nil, let the
user choose one."
  (let* ((own (contexture-current-context))
         (all (contexture--filled-contexts))
         (names (contexture--pluck :manager all)))
    (cond ((null names)
           (user-error "All contexts are empty; add something first"))
          ((and (not ask)
                (cl-intersection (ensure-list own) names :test #'equal))
           own)
          (t (contexture--choose-manager all own)))))

(defun contexture--manager-to-show (ask)
  "Return the context to show: a name, or a list of layers.
If ASK is non-nil, let the user choose it.  Otherwise it is this buffer's
context or, if that is empty, another one: the user chooses it, or it is the
one to which something was added last."
  (let ((own (contexture-current-context)))
    (cond (ask (contexture--read-manager t))
          ((or contexture-context
               (null contexture--last-manager)
               (contexture--of-context-p contexture--last-manager own))
           (if (and (listp own) (null contexture--last-manager))
               (contexture--own-or-offered own)
             own))
          ((contexture--holds-anything-p own) own)
          ((listp own) (contexture--own-or-offered own))
          (t contexture--last-manager))))

(defun contexture--own-or-offered (own)
  "Return OWN, layers, if they have items, else the context that the user chooses.
If no context has items, return OWN."
  (if (contexture--holds-anything-p own)
      own
    (if-let* ((all (contexture--filled-contexts)))
        (contexture--choose-manager all own)
      own)))

(defun contexture--filled-contexts ()
  "Return the server's entries of all contexts that have items."
  (cl-remove 0 (contexture--all-contexts)
             :key (lambda (entry) (plist-get entry :count))))

(defun contexture--all-contexts ()
  "Return the server's entries of all contexts.
Their tokens are without those of covered items."
  (let* ((entries (contexture--note-labels (contexture--ask 'list-managers nil)))
         ;; One item covers no other; a batch has at most 1,000 calls.
         (several (seq-take (cl-remove-if-not (lambda (it) (> (plist-get it :count) 1)) entries)
                            1000))
         (outcomes (and several
                        (ignore-error contexture-error
                          (contexture-request-batch
                           (mapcar (lambda (entry)
                                     `(list-items :manager ,(plist-get entry :manager)
                                                  :fields ("tokens" "covered-by")))
                                   several))))))
    (cl-loop for entry in several
             for outcome in outcomes
             unless (plist-get outcome :error)
             do (plist-put entry :tokens
                           (contexture--tokens-to-send (plist-get outcome :result))))
    entries))

(defun contexture--holds-anything-p (context)
  "Return non-nil if CONTEXT, a name or a list of layers, has items.
If the server does not answer at once, go by what it last reported."
  (< 0 (or (condition-case nil
               (plist-get (contexture-request
                           'list-items
                           `(:count-only t ,@(contexture--context-params context))
                           :timeout 0.08)
                          :count)
             (contexture-error (car (contexture--totals-of context))))
           0)))

(defun contexture--totals-of (context)
  "Return (ITEMS . TOKENS) of CONTEXT, as last reported, or nil if unknown.
TOKENS are those of what this Emacs sends."
  (cl-loop for manager in (ensure-list context)
           for (count size) = (gethash manager contexture--totals)
           when count
           sum count into items and sum (or size 0) into tokens
           and count t into known
           finally return
           (and (> known 0)
                (cons items
                      (max 0 (- tokens (contexture--unsent-tokens context)))))))

(defun contexture--label-of-text (context)
  "Return a phrase for what the text of CONTEXT has.
CONTEXT is a name or a list of layers, of which those count that have items
as last reported, the shared one last.  If at most one has, return a label."
  (let ((filled (cl-remove-if-not (lambda (manager)
                                    (< 0 (or (car (gethash manager contexture--totals)) 0)))
                                  (ensure-list context))))
    (if (null (cdr filled)) (contexture--label (or (car filled) context))
      (let ((labels (append (mapcar #'contexture--label (remove contexture--shared filled))
                            (and (member contexture--shared filled) '("the shared items")))))
        (concat (string-join (butlast labels) ", ") " and " (car (last labels)))))))

(defun contexture--unsent-tokens (context)
  "Return how many of the tokens reported for CONTEXT are not sent."
  (or (cdr (gethash context contexture--stale-and-unsent))
      (cl-loop for manager in (ensure-list context)
               sum (or (cdr (gethash manager contexture--stale-and-unsent)) 0))))

(defun contexture--choose-manager (all own)
  "Ask the user for one of the contexts in ALL; return its name.
ALL are entries of the server.  OWN is this buffer's context, a name or a list
of layers, from which the default comes."
  (let* ((candidates (contexture--candidates all))
         (name (lambda (it)
                 (car (cl-find-if (lambda (candidate)
                                    (contexture--of-context-p (cdr candidate) it))
                                  candidates))))
         (default (or (funcall name own)
                      (and contexture--last-manager
                           (funcall name contexture--last-manager))
                      (caar candidates)))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (let ((entry (contexture--entry
                                :manager (cdr (assoc name candidates)) all)))
                    (format "  %s" (contexture--size (plist-get entry :count)
                                                     (plist-get entry :tokens)))))))
         (chosen (completing-read
                  (format-prompt "Context" (contexture--visible default))
                  (mapcar #'contexture--visible-candidate (mapcar #'car candidates))
                  nil t nil 'contexture-context-history default)))
    (or (cdr (assoc chosen candidates)) chosen)))

(defun contexture--render-params (context)
  "Return parameters of `render-items' for CONTEXT within the budget.
CONTEXT is a name or a list of layers."
  (append (contexture--context-params context)
          (contexture--plist :max-tokens contexture-limit)))

(defun contexture--rendered (context)
  "Return the result of rendering CONTEXT in `contexture-format'.
CONTEXT is a name or a list of layers."
  (contexture--ask 'render-items
                   (append (contexture--render-params context)
                           (list :format (intern (format ":%s" contexture-format))))))

(defun contexture--rendered-size (rendered)
  "Return a phrase for the tokens of RENDERED, and what the budget left out.
RENDERED is a result of `render-items'."
  (let ((cut 0) (dropped 0))
    (dolist (item (plist-get rendered :report))
      (pcase (plist-get item :fate)
        (:cut (cl-incf cut))
        ;; The text of a covered item is there, in another one.
        (:dropped (unless (string-prefix-p "covered" (plist-get item :reason))
                    (cl-incf dropped)))))
    (concat (contexture--count (or (plist-get rendered :tokens) 0) "token")
            ;; Other counts are those of the items.
            " with headings"
            (when (> cut 0) "; one item cut")
            (when (> dropped 0)
              (format "; %d left out to fit the limit" dropped)))))

;;;###autoload
(defun contexture-copy (context)
  "Copy CONTEXT to the kill ring, in `contexture-format'.
CONTEXT is a name or a list of names, by default this buffer's context.
With a prefix argument, or if that is empty, choose a context.
`contexture-limit' limits what is copied."
  (interactive (list (contexture--read-manager current-prefix-arg)))
  (let ((rendered (contexture--rendered context)))
    (kill-new (plist-get rendered :text))
    (contexture--message "Copied the context of %s (%s)" (contexture--label-of-text context)
                         (contexture--rendered-size rendered))))

;;;###autoload
(defun contexture-insert (context)
  "Insert CONTEXT at point, in `contexture-format'.
CONTEXT is a name or a list of names, by default this buffer's context.
With a prefix argument, or if that is empty, choose a context.
`contexture-limit' limits what is inserted."
  (interactive
   (progn (barf-if-buffer-read-only)
          (list (contexture--read-manager current-prefix-arg))))
  (let ((rendered (contexture--rendered context)))
    (push-mark nil t)
    (insert (plist-get rendered :text))
    (contexture--message "Inserted the context of %s (%s)" (contexture--label-of-text context)
                         (contexture--rendered-size rendered))))

;;; Say and choose layers

;; What users see and choose about the layers of a buffer: items that moved
;; into a layer, contexts that are in no layer but may be expected there, and
;; where to add or to look.

(defvar contexture--told-elsewhere nil
  "Names of contexts in no layer that the user has been told about.")

(defun contexture--tell-opened-layers (opened)
  "Tell the user about items that OPENED, a result of `open-layers', reports.
They were moved into a layer, or are in contexts that are in no layer of this
buffer.  Mention each of these contexts once."
  (contexture--note-labels (plist-get opened :elsewhere))
  (when-let* ((taken (plist-get opened :taken-over)))
    (contexture--forget-layers)
    (contexture--message "Contexture: %s" (contexture--taken-over-text taken)))
  (when-let* ((elsewhere (cl-remove-if
                          (lambda (held)
                            (member (plist-get held :manager)
                                    contexture--told-elsewhere))
                          (plist-get opened :elsewhere))))
    (dolist (held elsewhere)
      (push (plist-get held :manager) contexture--told-elsewhere))
    (contexture--message "Contexture: %s" (contexture--elsewhere-text elsewhere))))

(defun contexture--taken-over-text (taken)
  "Return a phrase for TAKEN, contexts whose items were moved into layers."
  (mapconcat (lambda (held)
               (format "moved %s of %s to the %s"
                       (contexture--count (plist-get held :items) "item")
                       (contexture--visible (gethash (plist-get held :manager)
                                                     contexture--labels
                                                     (plist-get held :manager)))
                       (contexture--name (plist-get held :layer))))
             taken "; "))

(defun contexture--elsewhere-text (elsewhere)
  "Return a phrase for ELSEWHERE, contexts that are in no layer of this buffer."
  (concat "not sent from this buffer: "
          (mapconcat (lambda (held)
                       (format "%s of %s"
                               (contexture--count (plist-get held :items) "item")
                               (contexture--label (plist-get held :manager))))
                     elsewhere ", ")
          "; "
          (substitute-command-keys "C-u \\[contexture-list] shows them")))

(defun contexture--candidates (entries)
  "Return an alist from labels of the contexts in ENTRIES to their names.
ENTRIES are plists.  A context that has no label, or shares it with another,
is shown by its whole name."
  (let ((labels (mapcar (lambda (entry)
                          (or (plist-get entry :label) (plist-get entry :manager)))
                        entries)))
    (cl-loop for entry in entries
             for label in labels
             for manager = (plist-get entry :manager)
             collect (cons (if (and (plist-get entry :label)
                                    (= 1 (cl-count label labels :test #'equal)))
                               label
                             manager)
                           manager))))

(defun contexture--call-each (method calls success failure)
  "Call METHOD once for each of CALLS, lists of parameters, in one batch.
Then call SUCCESS with one result made of all, or FAILURE with the first
error."
  (if (null (cdr calls))
      (contexture--request-patiently method (car calls)
                                     :success success :error failure)
    (contexture-request-batch-async
     (mapcar (lambda (params) (cons method params)) calls)
     :success (lambda (outcomes)
                (if-let* ((problem (cl-some (lambda (it) (plist-get it :error))
                                            outcomes)))
                    (funcall failure problem)
                  (funcall success
                           (contexture--one-result
                            (mapcar (lambda (it) (plist-get it :result))
                                    outcomes))))))))

(defun contexture--one-result (results)
  "Return one plist made of RESULTS, plists.
Numbers are added, and lists appended; of other values, the first stays."
  (let ((one (copy-sequence (car results))))
    (dolist (result (cdr results) one)
      (cl-loop for (key value) on result by #'cddr
               for known = (plist-get one key)
               do (setq one (plist-put one key
                                       (cond ((numberp value) (+ value (or known 0)))
                                             ((listp value) (append known value))
                                             (t known))))))))

(provide 'contexture)
;;; contexture.el ends here
