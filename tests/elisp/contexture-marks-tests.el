;;; contexture-marks-tests.el --- Tests of the modes and the marks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Where the marks are, what they say, and that they go.

;;; Code:

(require 'contexture-test-helper)

(defmacro contexture-marks-tests--with-lines (&rest body)
  "Run BODY, with a server, in a buffer with the mode that visits ten lines."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-request 'ping)
     (contexture-test-visiting (contexture-marks-tests--file "a.txt")
       (set-window-buffer nil buffer)
       (buffer-enable-undo)
       (contexture-mode)
       ,@body)))

(defun contexture-marks-tests--file (name)
  "Write ten lines to the file NAME; return its full name."
  (apply #'contexture-test-file name
         (mapcar (lambda (n) (format "line %d" n)) (number-sequence 1 10))))

(defun contexture-marks-tests--add (start end)
  "Add the lines from START to END of this buffer."
  (save-excursion
    (contexture-add-region (contexture--line-position start)
                           (contexture--line-position (1+ end))))
  (contexture-marks-tests--settle))

(defun contexture-marks-tests--settle ()
  "Wait until the marks are those of the server."
  (contexture-test-settle)
  (llm-ert-wait-for
      (zerop (hash-table-count contexture-marks--fetching)))
  (contexture-test-settle))

(defun contexture-marks-tests--marks (&optional buffer)
  "Return the lines that are marked in BUFFER, as sorted (FIRST . LAST)."
  (with-current-buffer (or buffer (current-buffer))
    (save-restriction
      (widen)
      (contexture-marks-tests--lines))))

(defun contexture-marks-tests--lines ()
  "Return the lines that are marked in this buffer, which is widened."
    (sort (mapcar (lambda (overlay)
                    (cons (line-number-at-pos (overlay-start overlay) t)
                          (line-number-at-pos
                           (max (overlay-start overlay)
                                (1- (overlay-end overlay)))
                           t)))
                  (contexture-marks--overlays))
          (lambda (a b) (< (car a) (car b)))))

(defmacro contexture-marks-tests--should-mark (&rest lines)
  "Check that just LINES, each (FIRST . LAST), are marked in this buffer."
  `(should (equal (contexture-marks-tests--marks) ',lines)))

(defun contexture-marks-tests--line (n)
  "Go to the beginning of line N."
  (goto-char (point-min))
  (forward-line (1- n)))

;;;; Where

(ert-deftest contexture-marks-cover-the-lines-of-an-item ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 3 5)
    (contexture-marks-tests--should-mark (3 . 5))
    (contexture-marks-tests--add 8 8)
    (contexture-marks-tests--should-mark (3 . 5) (8 . 8))))

(ert-deftest contexture-marks-cover-whole-lines-of-a-part-of-a-line ()
  (contexture-marks-tests--with-lines
    (contexture-add-region 3 5)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (1 . 1))))

(ert-deftest contexture-marks-of-whole-buffers-and-files-are-on-the-first-line ()
  (contexture-marks-tests--with-lines
    (contexture-add-buffer)
    (contexture-add-file buffer-file-name)
    (contexture-add-file buffer-file-name 4 6)
    (contexture-marks-tests--settle)
    ;; The buffer and its file are one item.
    (contexture-marks-tests--should-mark (1 . 1) (4 . 6))))

(ert-deftest contexture-marks-show-what-was-there-before-the-mode ()
  (contexture-marks-tests--with-lines
    (contexture-mode -1)
    (contexture-marks-tests--add 2 3)
    (contexture-marks-tests--should-mark)
    (contexture-mode)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (2 . 3))))

(ert-deftest contexture-marks-are-on-buffers-without-a-file ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (with-current-buffer (generate-new-buffer "notes")
      (insert "one\ntwo\nthree")
      (contexture-mode)
      (contexture-marks-tests--add 2 3)
      (contexture-marks-tests--should-mark (2 . 3)))))

(ert-deftest contexture-marks-are-not-for-items-from-elsewhere ()
  (contexture-marks-tests--with-lines
    (contexture-request 'add-context '(:manager "a.txt" :content "just text"))
    (contexture-request 'add-context '(:manager "a.txt" :content "b"
                                       :metadata (:filename "/b" :start-line 1)))
    (contexture-request 'add-context '(:manager "a.txt" :content "b"
                                       :metadata (:buffer "a.txt" :start-line 1)))
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark)))

(ert-deftest contexture-marks-of-lines-that-do-not-exist-are-left-out ()
  (contexture-marks-tests--with-lines
    (contexture-request
     'add-context `(:manager "a.txt" :content "b"
                    :metadata (:filename ,buffer-file-name
                               :start-line 90 :end-line 95)))
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark)))

(ert-deftest contexture-marks-are-right-under-narrowing ()
  (contexture-marks-tests--with-lines
    (narrow-to-region (contexture--line-position 4) (contexture--line-position 7))
    (contexture-add-region (point-min) (point-max))
    (contexture-add-file buffer-file-name 9 9)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (4 . 6) (9 . 9))
    (should (buffer-narrowed-p))
    (contexture-mode -1)
    (contexture-marks-tests--should-mark)))

(ert-deftest contexture-marks-are-in-indirect-buffers-and-their-base ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 3 4)
    (let ((indirect (clone-indirect-buffer "clone" nil)))
      (with-current-buffer indirect
        (should contexture-mode)
        (contexture-marks-tests--add 7 8)
        (contexture-marks-tests--should-mark (3 . 4) (7 . 8))
        (contexture-mode -1)
        (contexture-marks-tests--should-mark))
      (contexture-marks-tests--should-mark (3 . 4) (7 . 8)))))

(ert-deftest contexture-marks-are-in-all-buffers-of-a-context ()
  (contexture-marks-tests--with-lines
    (setq contexture-context "both")
    (let ((other (find-file-noselect (contexture-marks-tests--file "b.txt"))))
      (with-current-buffer other
        (setq contexture-context "both")
        (contexture-mode)
        (contexture-marks-tests--add 1 2))
      (contexture-marks-tests--add 5 6)
      (contexture-marks-tests--should-mark (5 . 6))
      (should (equal (contexture-marks-tests--marks other) '((1 . 2))))
      (contexture-clear)
      (contexture-marks-tests--settle)
      (contexture-marks-tests--should-mark)
      (should-not (contexture-marks-tests--marks other)))))

;;;; Edits

(ert-deftest contexture-marks-follow-edits-above ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (goto-char (point-min))
    (insert "new\nnew\n")
    (contexture-marks-tests--should-mark (6 . 7))
    ;; Lines that are in the server are older than what the text says.
    (contexture-marks-tests--add 1 1)
    (contexture-marks-tests--should-mark (1 . 1) (6 . 7))))

(ert-deftest contexture-marks-keep-to-their-lines-when-their-borders-are-edited ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (contexture-marks-tests--line 4)
    (insert "x")
    (contexture-marks-tests--should-mark (4 . 5))
    (beginning-of-line)
    (insert "above\n")
    (contexture-marks-tests--should-mark (5 . 6))
    (contexture-marks-tests--line 7)
    (insert "below\n")
    (contexture-marks-tests--should-mark (5 . 6))
    (contexture-marks-tests--line 6)
    (end-of-line)
    (insert "x\nwithin")
    (contexture-marks-tests--should-mark (5 . 7))))

(defun contexture-marks-tests--check-undo (first last)
  "Check that undoing a deletion of lines FIRST to LAST brings a mark back."
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 6)
    (undo-boundary)
    (delete-region (contexture--line-position first)
                   (contexture--line-position (1+ last)))
    (undo-boundary)
    (let ((last-command 'ignore) (this-command 'undo)) (undo))
    (contexture-marks-tests--should-mark (4 . 6))))

(ert-deftest contexture-marks-come-back-by-undo-of-a-deletion ()
  (contexture-marks-tests--check-undo 4 6)
  (contexture-marks-tests--check-undo 3 7)
  (contexture-marks-tests--check-undo 2 4)
  (contexture-marks-tests--check-undo 6 8)
  (contexture-marks-tests--check-undo 5 5)
  (contexture-marks-tests--check-undo 3 3)
  (contexture-marks-tests--check-undo 7 7))

;; As Emacs 29 and later undo: without a thought for overlays.
(ert-deftest contexture-marks-come-back-without-the-help-of-undo ()
  (pcase-dolist (`(,first ,last) '((4 6) (3 7) (2 4) (6 8) (5 5) (3 3) (7 7)))
    (contexture-marks-tests--with-lines
      (contexture-marks-tests--add 4 6)
      (let* ((contexture-overlay--undo-moves nil)
             (position (contexture--line-position first))
             (text (delete-and-extract-region
                    position (contexture--line-position (1+ last))))
             (undo-in-progress t))
        (goto-char position)
        (insert text)
        (contexture-marks-tests--should-mark (4 . 6))))))

(ert-deftest contexture-marks-go-and-come-with-undo-of-the-context ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (contexture-undo)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark)
    (contexture-marks-tests--add 2 2)
    (contexture-clear)
    (contexture-marks-tests--settle)
    (contexture-undo)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (2 . 2))))

(ert-deftest contexture-marks-are-corrected-with-the-items-lines ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (goto-char (point-min))
    (insert "new\n")
    (save-buffer)
    (contexture-request 'refresh-items '(:manager "a.txt"))
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (5 . 6))))

(ert-deftest contexture-marks-survive-reverting-the-buffer ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (goto-char (point-min))
    (insert "new\n")
    (revert-buffer t t)
    (should contexture-mode)
    (contexture-marks-tests--settle)
    (contexture-marks-tests--should-mark (4 . 5))
    (should (string-prefix-p "in context" (contexture-marks-tests--help-at 4)))))

;;;; What they look like and say

(defun contexture-marks-tests--help-at (line)
  "Return what ElDoc finds at LINE."
  (save-excursion
    (contexture-marks-tests--line line)
    (run-hook-with-args-until-success 'eldoc-documentation-functions #'ignore)))

(ert-deftest contexture-marks-say-what-they-are ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (let ((text "in context a.txt (ctx-1, 8 tokens, current)"))
      (should (equal (contexture-marks-tests--help-at 5) text))
      (should (equal (get-char-property (contexture--line-position 4) 'help-echo)
                     text))
      (should-not (contexture-marks-tests--help-at 3))
      (should-not (contexture-marks-tests--help-at 6)))
    (contexture-marks-tests--line 4)
    (insert "x")
    (save-buffer)
    (contexture-marks-tests--settle)
    (should (equal (contexture-marks-tests--help-at 5)
                   "in context a.txt (ctx-1, 9 tokens, current)"))
    (contexture-marks-tests--line 4)
    (call-interactively #'contexture-keep-copy)
    (contexture-marks-tests--line 4)
    (insert "x")
    (save-buffer)
    (contexture-marks-tests--settle)
    (should (equal (contexture-marks-tests--help-at 5)
                   "in context a.txt (ctx-1, 9 tokens, changed)"))))

(ert-deftest contexture-marks-have-a-face-only-if-wanted ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 4)
    (let ((position (contexture--line-position 4)))
      (should-not (get-char-property position 'face))
      (let ((contexture-mark-face 'highlight))
        (contexture-marks-tests--add 8 8)
        (should (eq (get-char-property position 'face) 'highlight)))
      (should (get-char-property position 'line-prefix)))))

(ert-deftest contexture-marks-leave-the-line-prefixes-of-others-alone ()
  (contexture-marks-tests--with-lines
    (with-silent-modifications
      (put-text-property (point-min) (point-max) 'line-prefix "  "))
    (contexture-marks-tests--add 4 4)
    (should (equal (get-char-property (contexture--line-position 4) 'line-prefix)
                   "  "))
    (should (overlay-get (car (contexture-marks--overlays)) 'before-string))))

(ert-deftest contexture-marks-use-the-margin-and-give-it-back ()
  (contexture-marks-tests--with-lines
    (set-window-margins nil nil 3)
    (contexture-marks-tests--add 4 4)
    (should (equal (window-margins) '(1 . 3)))
    (should (eql left-margin-width 1))
    (contexture-undo)
    (contexture-marks-tests--settle)
    (should (equal (window-margins) '(nil . 3)))
    (should-not (local-variable-p 'left-margin-width))
    (setq left-margin-width 0)
    (contexture-marks-tests--add 4 4)
    (contexture-mode -1)
    (should (local-variable-p 'left-margin-width))
    (should (eql left-margin-width 0))))

(ert-deftest contexture-marks-leave-the-margin-of-others-alone ()
  (contexture-marks-tests--with-lines
    (setq left-margin-width 2)
    (contexture-marks-tests--add 4 4)
    (should-not contexture-marks--margin)
    (contexture-mode -1)
    (should (eql left-margin-width 2))))

;;;; Following the server

(ert-deftest contexture-marks-of-a-burst-of-changes-cost-few-calls ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--settle)
    (let* ((calls 0)
           (count (lambda (method &rest _)
                    (when (eq method 'get-context) (cl-incf calls)))))
      (advice-add 'contexture-request-async :before count)
      (unwind-protect
          (progn
            (dotimes (_ 40)
              (contexture-request-async
               'add-context `(:manager "a.txt" :content "x"
                              :metadata (:filename ,buffer-file-name :start-line 3))))
            (contexture-marks-tests--settle))
        (advice-remove 'contexture-request-async count))
      (should (= (length (contexture-marks--overlays)) 40))
      (should (<= calls 20)))))

(ert-deftest contexture-marks-stay-while-the-server-is-started-again ()
  (contexture-test-with-state
    (contexture-request 'ping)
    (contexture-test-visiting (contexture-marks-tests--file "a.txt")
      (contexture-mode)
      (contexture-marks-tests--add 4 5)
      (goto-char (point-min))
      (insert "unsaved\n")
      (let ((process (contexture-test-process)))
        (contexture-ert-kill-server t)
        (llm-ert-wait-for (not (eq process (contexture-test-process))))
        (llm-ert-wait-for (contexture-running-p)))
      (contexture-marks-tests--settle)
      (contexture-marks-tests--should-mark (5 . 6)))))

(ert-deftest contexture-marks-vanish-when-the-server-cannot-be-reached ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (oset contexture--connection target '("/nonexistent/contexture"))
    (contexture-ert-kill-server t)
    (llm-ert-wait-for (null (contexture-marks--overlays)))
    (should-not (local-variable-p 'left-margin-width))
    (should-not (contexture-marks-tests--help-at 4))))

(ert-deftest contexture-marks-vanish-when-the-server-is-left ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (contexture-disconnect)
    (contexture-marks-tests--should-mark)))

;;;; Turning off

(defun contexture-marks-tests--state ()
  "Return all that the mode could leave behind in Emacs and this buffer."
  (let (advised)
    (mapatoms (lambda (symbol)
                (when (and (fboundp symbol) (advice--p (symbol-function symbol)))
                  (push symbol advised))))
    (list :hooks (mapcar (lambda (hook)
                           (list hook (default-value hook)
                                 (local-variable-p hook) (symbol-value hook)))
                         '(contexture-notification-functions
                           contexture-connected-hook contexture-disconnected-hook
                           contexture-mode-hook
                           kill-buffer-hook after-save-hook after-revert-hook
                           post-command-hook pre-command-hook
                           after-change-functions before-change-functions
                           find-file-hook after-set-visited-file-name-hook
                           change-major-mode-hook after-change-major-mode-hook
                           window-configuration-change-hook
                           pre-redisplay-functions window-scroll-functions
                           eldoc-documentation-functions))
          :timers (contexture-test-timers)
          :overlays (overlays-in (point-min) (point-max))
          :margins (list (window-margins) left-margin-width
                         (local-variable-p 'left-margin-width))
          :processes (process-list)
          :eldoc eldoc-mode
          :advice advised
          :local (cl-remove-if-not
                  (lambda (name) (string-prefix-p "contexture" name))
                  (mapcar (lambda (entry)
                            (symbol-name (if (consp entry) (car entry) entry)))
                          (buffer-local-variables))))))

(ert-deftest contexture-mode-off-leaves-nothing-at-all ()
  (contexture-marks-tests--with-lines
    (contexture-mode -1)
    (let ((before (contexture-marks-tests--state)))
      (contexture-mode)
      (contexture-marks-tests--add 2 4)
      (should (contexture-marks--overlays))
      (should-not (equal (contexture-marks-tests--state) before))
      (contexture-mode -1)
      (should-not (contexture-marks--overlays))
      ;; What follows the text is the item's, and goes with that.
      (contexture-clear)
      (llm-ert-wait-for (null (contexture-test-item-ids)))
      (contexture-test-settle)
      (cl-loop for (key value) on (contexture-marks-tests--state) by #'cddr
               do (should (equal (list key value)
                                 (list key (plist-get before key))))))))

;; The same for completion after @ is in contexture-mention-tests.el.
(ert-deftest contexture-global-mode-off-leaves-nothing-at-all ()
  (contexture-marks-tests--with-lines
    (contexture-mode -1)
    (let ((before (contexture-marks-tests--state)))
      (contexture-global-mode)
      (contexture-marks-tests--add 2 4)
      (should (contexture-marks--overlays))
      (contexture-global-mode -1)
      (should-not (contexture-marks--overlays))
      ;; What follows the text is the item's, and goes with that.
      (contexture-clear)
      (llm-ert-wait-for (null (contexture-test-item-ids)))
      (contexture-test-settle)
      (cl-loop for (key value) on (contexture-marks-tests--state) by #'cddr
               do (should (equal (list key value)
                                 (list key (plist-get before key))))))))

(ert-deftest contexture-mode-goes-with-a-killed-buffer ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (let ((overlay (car (contexture-marks--overlays))))
      (contexture-add-file buffer-file-name 1 1) ; an answer on its way
      (set-buffer-modified-p nil)
      (kill-buffer)
      (should-not (overlay-buffer overlay))
      (should-not contexture-notification-functions)
      (contexture-marks-tests--settle))))

(ert-deftest contexture-mode-stays-when-the-major-mode-changes ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (emacs-lisp-mode)
    (should contexture-mode)
    (contexture-marks-tests--should-mark (4 . 5))
    (contexture-mode -1)
    (should-not (car (window-margins)))
    (contexture-marks-tests--should-mark)))

(ert-deftest contexture-global-mode-undoes-itself ()
  (contexture-marks-tests--with-lines
    (let ((by-hand (current-buffer))
          (before (list find-file-hook after-set-visited-file-name-hook))
          (earlier (find-file-noselect (contexture-marks-tests--file "b.txt")))
          (scratch (generate-new-buffer "no file"))
          later)
      (unwind-protect
          (progn
            (contexture-global-mode)
            (setq later (find-file-noselect (contexture-marks-tests--file "c.txt")))
            (should (buffer-local-value 'contexture-mode earlier))
            (should (buffer-local-value 'contexture-mode later))
            (should-not (buffer-local-value 'contexture-mode scratch)))
        (contexture-global-mode -1))
      (should (equal (contexture-marks--buffers) (list by-hand)))
      (should (equal (list find-file-hook after-set-visited-file-name-hook) before)))))

;;;; The mode line

(ert-deftest contexture-mode-line-shows-tokens-of-the-budget ()
  (contexture-marks-tests--with-lines
    (contexture-marks-tests--add 4 5)
    (should (equal (contexture--lighter) " ctx:1/8"))
    (let ((contexture-limit 10))
      (should (equal (contexture--lighter) '(" ctx:1 " "8/10")))
      (should-not (get-text-property 0 'face (cadr (contexture--lighter)))))
    (let ((contexture-limit 9))
      (should (equal (contexture--lighter) '(" ctx:1 " "8/9")))
      (should (eq (get-text-property 0 'face (cadr (contexture--lighter)))
                  'contexture-over-limit)))))

;;;; Cost

(ert-deftest contexture-marks-of-200-items-cost-no-keystroke-anything ()
  (contexture-test-with-server
    (contexture-request 'ping)
    (contexture-test-visiting
        (apply #'contexture-test-file "big.txt"
               (mapcar #'number-to-string (number-sequence 1 2000)))
      (contexture-request 'configure-manager '(:manager "big.txt" :max-items 500))
      (contexture-mode)
      (dotimes (n 200)
        (contexture-request-async
         'add-context `(:manager "big.txt" :content ,(number-to-string (1+ n))
                        :metadata (:filename ,buffer-file-name
                                   :start-line ,(1+ (* n 10))
                                   :end-line ,(+ 4 (* n 10))))))
      (contexture-marks-tests--settle)
      (should (= (length (contexture-marks--overlays)) 200))
      (dolist (hook '(after-change-functions before-change-functions))
        (should-not (cl-some (lambda (f) (string-prefix-p "contexture" (format "%s" f)))
                             (symbol-value hook))))
      (contexture-marks-tests--line 1003) ; in the middle of a mark
      (let ((seconds (car (benchmark-run 1000 (self-insert-command 1 ?x)))))
        (message "200 marks: %.1f microseconds a keystroke" (* 1000 seconds))
        (should (< seconds 1.0))))))

(ert-deftest contexture-marks-mode-line-names-other-contexts ()
  "The mode line says which context is not the buffer's own."
  (with-temp-buffer
    (rename-buffer "own.el" t)
    (should (equal (contexture--lighter-name (buffer-name)) " ctx"))
    (should (equal (contexture--lighter-name contexture--shared) " ctx[shared]"))
    (should (equal (contexture--lighter-name "~/src/tool/") " ctx[tool]"))
    (should (equal (contexture--lighter-name "a context of a long name") " ctx[a context of a …]"))))

;;;; The mouse

(ert-deftest contexture-marks-are-in-the-context-menu ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-marks-tests--file "a.txt")
      (contexture-mode 1)
      (switch-to-buffer (current-buffer))
      (contexture-marks-tests--add 2 3)
      (let* ((menu-at (lambda (line)
                        (contexture--context-menu
                         (make-sparse-keymap)
                         `(mouse-3 (,(selected-window) ,(contexture--line-position line)
                                    (0 . 0) 0)))))
             (menu (funcall menu-at 2)))
        (should (memq #'contexture--context-menu context-menu-functions))
        (should-not (lookup-key (funcall menu-at 5) [contexture-remove]))
        (should (equal "Add to Context" (nth 2 (assq 'contexture-add-dwim menu))))
        (goto-char (point-max))
        (call-interactively (lookup-key menu [contexture-remove]))
        (contexture-test-settle)
        (should-not (contexture-test-items))
        (contexture-mode -1)
        (should-not (memq #'contexture--context-menu context-menu-functions))))))

(provide 'contexture-marks-tests)
;;; contexture-marks-tests.el ends here
