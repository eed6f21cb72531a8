;;; contexture-repl-block.el --- Use the code of an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Copies and inserts the code between the fences of an answer, and proposes
;; it as a change where it belongs: of the code that was asked about, or of
;; the definition with its name.  See contexture-review.el.

;;; Code:

(require 'contexture-defun)
(require 'contexture-repl-view)
(require 'contexture-review)
(eval-when-compile (require 'subr-x))

(declare-function contexture-repl-code--again "contexture-repl-code" (session origin remark))

(cl-defstruct (contexture-repl--origin (:constructor contexture-repl--make-origin)
                                       (:copier nil))
  "Origin of the code in a question.
The code is between the markers BEG and END in BUFFER, which visited
FILE; TEXT is the code as it was then.  WATCH, if non-nil, is a function
that is called with the answer so far and with `more', `done' or `failed'."
  buffer beg end file text watch)

;;;; Blocks

(defun contexture-repl--block-here ()
  "Return the position of the block of code at point, or of the last one."
  (if (get-text-property (point) 'contexture-block) (point)
    (or (contexture-repl--last-block)
        (user-error "No answer here has a block of code"))))

(defun contexture-repl--last-block ()
  "Return a position in the last block of code that a model wrote, or nil."
  (let ((position (marker-position contexture-repl--tail)) found)
    (while (and (not found) (> position (point-min)))
      (if (contexture-repl--answer-block-p (1- position))
          (setq found (1- position))
        (setq position (previous-single-property-change
                        position 'contexture-block nil (point-min)))))
    found))

(defun contexture-repl--answer-block-p (position)
  "Return non-nil if a block of code of an answer is at POSITION."
  (let ((message (get-text-property position 'contexture-message)))
    (and (get-text-property position 'contexture-block)
         message
         (eq (contexture-repl--message-role message) :assistant))))

(defun contexture-repl-copy-block ()
  "Copy the block of code at point, by default the last one."
  (interactive)
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (kill-new text)
    (contexture--message "Copied %s" (contexture--count
                          (length (split-string text "\n" t)) "line"))))

(defun contexture-repl-insert-block (buffer)
  "Insert the block of code at point, by default the last one, in BUFFER.
Interactively, BUFFER is that of another window; with a prefix argument,
or if there is no other window, choose one."
  (interactive (list (contexture-repl--other-buffer current-prefix-arg)))
  (let ((text (contexture-repl-markdown--block-text (contexture-repl--block-here))))
    (with-current-buffer buffer
      (barf-if-buffer-read-only)
      (let ((window (get-buffer-window buffer t)))
        (when window (goto-char (window-point window)))
        (push-mark)
        (insert text)
        (when window (set-window-point window (point)))))
    (contexture--message "Inserted in %s" (buffer-name (get-buffer buffer)))))

(defun contexture-repl--other-buffer (ask)
  "Return a buffer to insert code in; let the user choose if ASK."
  (let ((window (and (not ask)
                     (cl-find-if (lambda (window)
                                   (with-current-buffer (window-buffer window)
                                     (not (or buffer-read-only
                                              (derived-mode-p 'contexture-repl-mode)))))
                                 (window-list)))))
    (if window (window-buffer window)
      (get-buffer (read-buffer "Insert in buffer: " (other-buffer) t)))))

(defun contexture-repl-next-block (&optional count)
  "Go to the next block of code, or COUNT blocks forward."
  (interactive "p")
  (let ((step (if (< (or count 1) 0) -1 1)))
    (dotimes (_ (abs (or count 1)))
      (contexture-repl--to-block step))))

(defun contexture-repl-previous-block (&optional count)
  "Go to the previous block of code, or COUNT blocks back."
  (interactive "p")
  (contexture-repl-next-block (- (or count 1))))

(defun contexture-repl--to-block (step)
  "Go to the next block of code, or the previous one if STEP is negative."
  (let* ((here (get-text-property (point) 'contexture-block))
         (starts (contexture-repl--block-starts))
         (place (if (> step 0)
                    (cl-find-if (lambda (it) (> it (point))) starts)
                  (cl-find-if (lambda (it)
                                (and (< it (point))
                                     (not (eq here (get-text-property
                                                    it 'contexture-block)))))
                              (reverse starts)))))
    (goto-char (or place (user-error "There is no other block of code")))))

(defun contexture-repl--block-starts ()
  "Return the start positions of the blocks of code in this buffer."
  (let ((position (point-min)) starts)
    (while (< position contexture-repl--tail)
      (when (get-text-property position 'contexture-block)
        (push position starts))
      (setq position (next-single-property-change
                      position 'contexture-block nil contexture-repl--tail)))
    (nreverse starts)))

;;;; Applying

(defun contexture-repl-apply ()
  "Propose the block of code at point, by default the last one, at its place.
That is the code that the question was about, or the definition of that
name in the project's buffers and in the context.  \\<contexture-review-map>There, \\[contexture-review-accept] accepts
the change and \\[contexture-review-reject] rejects it.  No file is saved."
  (interactive)
  (let* ((block (contexture-repl--block-here))
         (message (get-text-property block 'contexture-message))
         (code (contexture-repl-markdown--block-text block))
         (origin (or (and message (contexture-repl--message-origin message))
                     (contexture-repl--definition code)))
         (bounds (contexture-repl--locate origin))
         (session (current-buffer)))
    (with-current-buffer (contexture-repl--origin-buffer origin)
      (contexture-review--check)
      (let* ((old (buffer-substring-no-properties (car bounds) (cdr bounds)))
             (new (contexture-repl--fit code old)))
        (when (equal new old)
          (contexture--user-error "%s already has that code" (buffer-name)))
        (contexture-review--show
         (contexture-review--begin
          (car bounds) (cdr bounds)
          :again (apply-partially #'contexture-repl-code--again session origin))
         new t))
      (pop-to-buffer (current-buffer))
      (goto-char (car bounds)))))

(defun contexture-repl--locate (origin)
  "Return the bounds of the text of ORIGIN, and prepare its buffer."
  (let ((buffer (contexture-repl--origin-buffer origin))
        (file (contexture-repl--origin-file origin)))
    (cond ((buffer-live-p buffer)
           (cons (copy-marker (contexture-repl--origin-beg origin))
                 (copy-marker (contexture-repl--origin-end origin) t)))
          ((and file (file-exists-p file))
           (setf (contexture-repl--origin-buffer origin) (find-file-noselect file))
           (with-current-buffer (contexture-repl--origin-buffer origin)
             (contexture-repl--find-text (contexture-repl--origin-text origin))))
          (t (user-error "The buffer of that code is gone; copy or insert it")))))

(defun contexture-repl--find-text (text)
  "Return the bounds of TEXT, which must occur once in this buffer."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (let* ((case-fold-search nil)
             (end (or (search-forward text nil t)
                      (contexture--user-error "That code is no longer in %s; copy or \
insert it" (buffer-name)))))
        (when (search-forward text nil t)
          (contexture--user-error "That code is in %s more than once; copy or \
insert it" (buffer-name)))
        (cons (copy-marker (- end (length text))) (copy-marker end t))))))

(defun contexture-repl--fit (text old)
  "Return TEXT with a newline at its end if and only if OLD has one."
  (let ((bare (string-trim-right text "\n+")))
    (if (string-suffix-p "\n" old) (concat bare "\n") bare)))

;;;; The definition of a name

(defun contexture-repl--definition (code)
  "Return the origin of the definition that CODE defines anew."
  (let* ((name (or (contexture-repl--defined-name code)
                   (user-error "Cannot tell which buffer to change; copy or \
insert the code")))
         (found (cl-loop for buffer in (contexture-repl--code-buffers)
                         append (contexture-repl--definitions-in buffer name))))
    (cdr (cond ((null found)
                (contexture--user-error "No file of the context and no buffer of the project \
defines %s; copy or insert the code" name))
               ((null (cdr found)) (car found))
               (t (assoc (completing-read (format "Which definition of %s? " name)
                                          found nil t)
                         found))))))

(defun contexture-repl--defined-name (code)
  "Return the name that CODE defines first, or nil."
  (with-temp-buffer
    (insert code)
    (goto-char (point-min))
    (let (name)
      (while (not (or (setq name (car (contexture-defun--head-here))) (eobp)))
        (forward-line))
      name)))

(defun contexture-repl--code-buffers ()
  "Return the buffers of the context's files, and those of the project."
  (let ((root (plist-get contexture-repl--session :project))
        (context (cl-loop for item in contexture-repl--items
                          for file = (plist-get (plist-get item :metadata) :filename)
                          when (and (stringp file) (file-readable-p file)
                                    (not (file-remote-p file)))
                          collect (find-file-noselect file t))))
    (delete-dups
     (append context
             (cl-remove-if-not
              (lambda (buffer)
                (let ((file (buffer-file-name buffer)))
                  (and file root (not (eq buffer (current-buffer)))
                       (file-in-directory-p file root))))
              (buffer-list))))))

(defun contexture-repl--definitions-in (buffer name)
  "Return the definitions of NAME in BUFFER, each (PLACE . ORIGIN)."
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        (let ((case-fold-search nil) found)
          (while (search-forward name nil t)
            (when-let* (((equal name (car (contexture-defun--head-here))))
                        (bounds (contexture--defun-bounds)))
              (push (contexture-repl--definition-at bounds) found))
            (forward-line))
          (nreverse found))))))

(defun contexture-repl--definition-at (bounds)
  "Return (PLACE . ORIGIN) for the definition between BOUNDS in this buffer."
  (cons (format "%s:%d" (buffer-name) (line-number-at-pos (car bounds)))
        (contexture-repl--make-origin
         :buffer (current-buffer) :file buffer-file-name
         :beg (copy-marker (car bounds)) :end (copy-marker (cdr bounds) t)
         :text (buffer-substring-no-properties (car bounds) (cdr bounds)))))

(provide 'contexture-repl-block)
;;; contexture-repl-block.el ends here
