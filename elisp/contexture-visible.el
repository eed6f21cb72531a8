;;; contexture-visible.el --- Show what hides in names  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A name may contain invisible characters: controls, line ends, marks that
;; reverse the text after them, characters without width.  With them one
;; file can look like another, and a model can ask for something other than
;; what you read.  Wherever the package shows a name, such characters become
;; escapes such as \u{202e}, in the server's form.  Where contents are
;; shown, they only look that way; the text stays as it is.
;;
;; `glyphless-display-mode' would show most of these characters, but
;; only in buffers, only where it is on, and the text would still be
;; reversed.

;;; Code:

(require 'cl-lib)

(defconst contexture-visible--ignorable
  (rx (any #xad #x34f #x61c (#x115f . #x1160) (#x17b4 . #x17b5) (#x180b . #x180f)
           (#x200b . #x200f) (#x2028 . #x202e) (#x2060 . #x206f) #x3164
           (#xfe00 . #xfe0f) #xfeff #xffa0 (#xfff0 . #xfffb) (#x1bca0 . #x1bca3)
           (#x1d173 . #x1d17a) (#xe0000 . #xe0fff)))
  "Regexp for a character beyond ASCII that is invisible.
That is Default_Ignorable_Code_Point of Unicode's
DerivedCoreProperties.txt, the separators of lines and paragraphs, and
the marks of interlinear annotations.")

(defconst contexture-visible--flags '("gbeng" "gbsct" "gbwls")
  "Tag sequences after a black flag that make another flag.")

(defconst contexture-visible--cursive
  '(arabic syriac nko mandaic mongolian phags-pa manichaean adlam hanifi-rohingya)
  "Scripts whose letters join.")

;;;; Characters

(defun contexture-visible--hidden-p (char)
  "Return non-nil if CHAR, by itself, is invisible.
Bytes that are not text are visible: Emacs shows them as escapes."
  (cond ((< char ?\s) t)
        ((< char #x7f) nil)
        ((< char #xa0) t)
        ((> char #x10ffff) nil)
        (t (or (string-match-p contexture-visible--ignorable (char-to-string char))
               (eq (contexture-visible--category char) 'Cn)))))

(defun contexture-visible--category (char)
  "Return the general category of CHAR, a symbol."
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
  "Return non-nil if the hidden character of TEXT at INDEX belongs there.
It belongs there if it changes how ordinary text looks: a joiner between letters
that join, a selector after a character with variants, a part of an
emoji."
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
      ((pred (<= #xe0100)) (contexture-visible--script-p base 'han 'cjk-misc))
      ((pred (<= #xe0000)) (contexture-visible--in-flag-p text index))
      ((guard (<= #xfe00 char #xfe0d))
       (or (contexture-visible--script-p base 'han 'cjk-misc)
           (eq (contexture-visible--category base) 'Sm)))
      ((guard (<= #x180b char #x180f))
       (and (contexture-visible--script-p base 'mongolian)
            (not (contexture-visible--hidden-p base)))))))

(defun contexture-visible--in-flag-p (text index)
  "Return non-nil if the tag of TEXT at INDEX is part of a flag."
  (cl-some
   (lambda (letters)
     (let* ((tags (concat [#x1f3f4] (mapcar (lambda (it) (+ #xe0000 it)) letters)
                          [#xe007f]))
            (at (string-search tags text (max 0 (- index (length tags))))))
       (and at (< at index (+ at (length tags))))))
   contexture-visible--flags))

;;;; Texts

(defun contexture--visible (text &optional lines)
  "Return TEXT, a string or nil, with escapes for its hidden characters.
With LINES non-nil, line ends and tabs stay."
  (let ((start 0) (done 0) parts)
    (while (and text (setq start (string-match "[^ -~]" text start)))
      (when (and (not (and lines (memq (aref text start) '(?\n ?\t))))
                 (contexture-visible--hidden-p (aref text start))
                 (not (contexture-visible--right-p text start)))
        (push (substring text done start) parts)
        (push (contexture-visible--escape (aref text start)
                                          (text-properties-at start text))
              parts)
        (setq done (1+ start)))
      (setq start (1+ start)))
    (if (null parts) text
      (apply #'concat (nreverse (cons (substring text done) parts))))))

(defun contexture--visible-data (data)
  "Return DATA from the server with escapes in all its strings.
Use the result for display only; keep the data themselves."
  (cond ((stringp data) (contexture--visible data))
        ((consp data) (cons (contexture--visible-data (car data))
                            (contexture--visible-data (cdr data))))
        (t data)))

(defun contexture--visible-candidate (name)
  "Return NAME, a completion candidate, displayed with escapes.
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

(defun contexture--show-hidden (&optional beg end)
  "Make the hidden characters from BEG to END visible.
BEG and END default to the whole buffer.  Controls are left to Emacs,
which shows them as ^A or \\200.  The text does not change."
  (save-excursion
    (goto-char (or beg (point-min)))
    (with-silent-modifications
      (while (re-search-forward contexture-visible--ignorable end t)
        (let* ((at (1- (point)))
               (from (max (point-min) (- at 8)))
               (around (buffer-substring-no-properties from (min (point-max) (+ at 8)))))
          (if (contexture-visible--right-p around (- at from))
              ;; An earlier call may have escaped it, when the next character was
              ;; not there yet.
              (remove-text-properties at (1+ at) '(display nil))
            (put-text-property at (1+ at) 'display
                               (contexture-visible--escape (char-after at)))))))))

(defun contexture--format (string &rest arguments)
  "Return `format-message' of STRING, with escapes in ARGUMENTS."
  (apply #'format-message string
         (mapcar (lambda (it) (if (stringp it) (contexture--visible it) it))
                 arguments)))

(defun contexture--message (string &rest arguments)
  "Call `message' with STRING, and escapes in ARGUMENTS."
  (message "%s" (apply #'contexture--format string arguments)))

(defun contexture--user-error (string &rest arguments)
  "Signal `user-error' with STRING, and escapes in ARGUMENTS."
  (user-error "%s" (apply #'contexture--format string arguments)))

;;;; Completion

(autoload 'contexture-embark--offer "contexture-embark")

(defun contexture--table (names category &optional annotate)
  "Return a completion table of NAMES, in their order.
NAMES may be a function that returns them, called each time.  CATEGORY
is a symbol, by which other packages know what is chosen:
`contexture-item', `contexture-session' and others.  ANNOTATE, if
non-nil, is called with a name and returns its annotation."
  (lambda (string predicate action)
    (if (not (eq action 'metadata))
        (complete-with-action
         action
         (mapcar #'contexture--visible-candidate
                 (if (functionp names) (funcall names) names))
         string predicate)
      (when (boundp 'embark-keymap-alist)
        (contexture-embark--offer))
      `(metadata (category . ,category)
                 ,@(and annotate `((annotation-function . ,annotate)))
                 (display-sort-function . identity)
                 (cycle-sort-function . identity)))))

(provide 'contexture-visible)
;;; contexture-visible.el ends here
