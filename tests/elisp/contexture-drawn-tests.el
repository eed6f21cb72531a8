;;; contexture-drawn-tests.el --- What counts as shown, beside a screen  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Only an Emacs that draws can say whether something was shown.  Each test
;; starts one in a terminal (tmux), types keys into it, and reads what is on
;; its screen.  Whatever counts as shown there must have been on that screen.

;;; Code:

(require 'contexture-test-helper)
(require 'server)

(defvar contexture-drawn-tests--screens nil
  "Text of the screens that were looked at, all lines of each joined.")

;;;; An Emacs that draws

(defun contexture-drawn-tests--tmux (&rest arguments)
  "Call tmux with ARGUMENTS, on a server of its own, and return its output."
  (with-temp-buffer
    (let ((process-environment (append '("TMUX" "LC_ALL=C.UTF-8") process-environment)))
      (unless (equal 0 (apply #'call-process "tmux" nil t nil "-u" "-f" "/dev/null"
                              "-S" (expand-file-name "tmux" llm-ert-directory) arguments))
        (ert-fail (list arguments (buffer-string)))))
    (buffer-string)))

(defun contexture-drawn-tests--start ()
  "Start an Emacs in a terminal."
  (contexture-test-write-init
   "drawn"
   '((setq load-prefer-newer t)
     (require 'contexture-tools)
     (require 'contexture-conversation)
     (require 'contexture-doctor)
     (require 'contexture-sessions)
     (menu-bar-mode -1)
     (server-start)))
  (contexture-drawn-tests--tmux
   "new-session" "-d" "-x" "80" "-y" "24" "--"
   (expand-file-name invocation-name invocation-directory) "-Q" "-nw"
   "-L" (file-name-directory (locate-library "contexture"))
   "-l" (expand-file-name "init.el" llm-ert-directory))
  (contexture-drawn-tests--tmux "set-option" "-g" "status" "off")
  (llm-ert-wait-for (file-exists-p "drawn")))

(defmacro contexture-drawn-tests--with (&rest body)
  "Run BODY with an Emacs in a terminal."
  (declare (indent 0) (debug t))
  `(progn
     (contexture-test-use-clients "tmux (Debian: tmux)" (executable-find "tmux"))
     (contexture-test-in-directory
      (lambda ()
        (let ((contexture-drawn-tests--screens nil))
          (unwind-protect
              (progn (contexture-drawn-tests--start)
                     ,@body)
            (ignore-errors (contexture-drawn-tests--tmux "kill-server"))))))))

(defun contexture-drawn-tests--ask (form)
  "Return the value of FORM in the Emacs that draws, in its selected window."
  (let ((server-use-tcp nil)
        (server-socket-dir (directory-file-name llm-ert-directory)))
    (with-timeout (llm-ert-timeout (ert-fail (list "no answer" form)))
      (server-eval-at "drawn" `(with-current-buffer (window-buffer) ,form)))))

(defun contexture-drawn-tests--look ()
  "Remember what is on the screen, once nothing more is drawn."
  (let (screen before)
    (while (not (equal before (setq screen (contexture-drawn-tests--tmux "capture-pane" "-p"))))
      (setq before screen)
      (sleep-for 0.1))
    ;; A line goes on after a backslash, and a new line where it was divided.
    (push (mapconcat (lambda (line) (replace-regexp-in-string "\\\\ *\\'" "" line))
                     (split-string screen "\n") "")
          contexture-drawn-tests--screens)))

(defun contexture-drawn-tests--type (&rest keys)
  "Type KEYS, as tmux names them."
  (apply #'contexture-drawn-tests--tmux "send-keys" keys))

(defun contexture-drawn-tests--words (text)
  "Return the words of TEXT."
  (split-string text "[^a-z0-9]+" t))

(defun contexture-drawn-tests--propose (old new &rest setup)
  "Propose NEW in place of OLD, a whole file, after the forms SETUP."
  (contexture-drawn-tests--ask
   `(progn
      (when (get-file-buffer "a.txt")
        (with-current-buffer "a.txt" (set-buffer-modified-p nil) (kill-buffer)))
      (delete-other-windows)
      (write-region ,old nil "a.txt" nil 'silent)
      (find-file "a.txt")
      ,@setup
      (redisplay t)
      (let ((contexture-tool-project default-directory)
            (windows (current-window-configuration)))
        (contexture-tools-change--propose #'ignore "a.txt" ,new ,old nil)
        (set-window-configuration windows)
        (message nil))                  ; a long one makes the window smaller for a while
      t)))

(defun contexture-drawn-tests--parts ()
  "Return (TEXT . SEEN) of each line that is proposed to go or to come."
  (contexture-drawn-tests--ask
   '(cl-loop for part in (contexture-review--parts-here)
             append (cl-mapcar
                     #'cons
                     (append (split-string (overlay-get part 'contexture-old) "\n" t)
                             (mapcar #'substring-no-properties
                                     (overlay-get part 'contexture-lines)))
                     (mapcar (lambda (it) (and it t))
                             (append (overlay-get part 'contexture-seen) nil))))))

(defun contexture-drawn-tests--check ()
  "Check what counts as seen by what was on the screen.
Return the lines that do not count as seen."
  (contexture-drawn-tests--look)
  (cl-loop for (text . seen) in (contexture-drawn-tests--parts)
           if seen do (dolist (word (contexture-drawn-tests--words text))
                        (unless (cl-some (lambda (screen) (string-search word screen))
                                         contexture-drawn-tests--screens)
                          (ert-fail (list "never on the screen" word text
                                          contexture-drawn-tests--screens))))
           else collect text))

(defun contexture-drawn-tests--lines (name from to &optional words)
  "Return lines NAMEnWi, n from FROM to TO, of WORDS words each, or one."
  (mapconcat (lambda (number)
               (concat (mapconcat (lambda (word) (format "%s%dw%dx" name number word))
                                  (number-sequence 1 (or words 1)) " ")
                       "\n"))
             (number-sequence from to) ""))

;;;; Tests

(defconst contexture-drawn-tests--cases
  (let* ((lines #'contexture-drawn-tests--lines)
         (old (funcall lines "old" 1 40))
         (change (lambda (from to new)
                   (concat (funcall lines "old" 1 (1- from)) new
                           (funcall lines "old" (1+ to) 40))))
         (long (funcall change 3 4 (funcall lines "new" 1 2 40)))
         (wide (concat (funcall lines "old" 1 2) (funcall lines "wide" 3 3 30)
                       (funcall lines "old" 4 40))))
    `(;; NAME WHETHER-ALL-IS-SHOWN OLD NEW SETUP…
      ("small" t ,old ,(funcall change 3 4 "new1x\nnew2x\n"))
      ("deleted" t ,old ,(funcall change 3 4 ""))
      ("deleted, more than the window" nil ,old ,(funcall change 3 38 "new1x\n"))
      ("below the window" nil ,old ,(funcall change 35 36 "new1x\n"))
      ("at the edge" nil ,old ,(funcall change 20 21 "new1x\nnew2x\nnew3x\n"))
      ("two parts" nil ,old ,(funcall change 3 38 (concat "new1x\n" (funcall lines "old" 4 37)
                                                          "new2x\n")))
      ("inserted" t ,old ,(funcall change 5 4 "new1x\nnew2x\n"))
      ("inserted at the top" t ,old ,(funcall change 1 0 "new1x\nnew2x\n"))
      ("at the end" t "old1x\nold2x\n" "old1x\nold2x\nnew1x\nnew2x\n")
      ("at the end, without a newline" t "old1x\nold2x" "old1x\nold2x\nnew1x\nnew2x")
      ("at the end, much" nil "old1x\nold2x\n" ,(concat "old1x\nold2x\n" (funcall lines "new" 1 60)))
      ("long lines" t ,old ,long)
      ("long lines, cut" t ,old ,long (setq truncate-lines t))
      ("long lines, numbered" t ,old ,long
       (setq truncate-lines t display-line-numbers t))
      ("long lines, by words" t ,old ,long (visual-line-mode 1))
      ("long old line" t ,wide ,old)
      ("long old line, cut" nil ,wide ,old (setq truncate-lines t))
      ("long old line, indented" nil
       ,(concat "old1x\n" (make-string 65 ?a) " wide1x\n" old) ,(concat "old1x\n" old)
       (setq truncate-lines t)
       (put-text-property 1 (point-max) 'line-prefix "          "))
      ("beside another window" nil ,wide ,old (split-window-right))
      ("new lines beside another window" t ,old ,(funcall change 3 4 (funcall lines "new" 1 2 10))
       (split-window-right))
      ("new lines in a narrow window" t ,old ,(funcall change 3 4 (funcall lines "new" 1 2 5))
       (split-window-right 14))
      ("scrolled aside" nil ,old ,(funcall change 3 4 "new1x\n")
       (setq truncate-lines t auto-hscroll-mode nil) (set-window-hscroll nil 3))
      ("folded" nil ,old ,(funcall change 5 6 "new1x\n")
       (overlay-put (make-overlay (progn (goto-char (point-min)) (forward-line 3) (point))
                                  (progn (forward-line 8) (point)))
                    'invisible t)
       (goto-char (point-min)))
      ("folded behind a heading" nil ,old ,(funcall change 5 6 "new1x\n")
       (setq buffer-invisibility-spec '((outline . t)))
       (overlay-put (make-overlay (progn (goto-char (point-min)) (forward-line 3)
                                         (line-end-position))
                                  (progn (forward-line 8) (line-end-position)))
                    'invisible 'outline)
       (goto-char (point-min)))
      ("shown as something else" nil ,old ,(funcall change 5 6 "new1x\n")
       (progn (goto-char (point-min)) (forward-line 4))
       (with-silent-modifications
         (put-text-property (point) (+ 5 (point)) 'display "harmless"))
       (goto-char (point-min)))
      ("below a tall header" t ,old ,(funcall change 3 4 "new1x\n")
       (setq header-line-format "header"))))
  "Changes that are proposed, and whether all of them is shown at once.")

(ert-deftest contexture-drawn-changes-count-as-shown-only-if-they-were ()
  (contexture-drawn-tests--with
    (pcase-dolist (`(,name ,all ,old ,new . ,setup) contexture-drawn-tests--cases)
      (ert-info (name :prefix "Case: ")
        (setq contexture-drawn-tests--screens nil)
        (apply #'contexture-drawn-tests--propose old new setup)
        (contexture-drawn-tests--look)
        (sleep-for 0.3)
        (let ((unseen (contexture-drawn-tests--check)))
          (should (equal (list name all) (list name (null unseen)))))
        (dotimes (_ 3)
          (contexture-drawn-tests--type "C-v")
          (contexture-drawn-tests--look)
          (sleep-for 0.3)
          (contexture-drawn-tests--check))))))

(ert-deftest contexture-drawn-questions-are-shown-in-full-or-not-asked ()
  (contexture-drawn-tests--with
    (let ((ask (lambda (question)
                 (contexture-drawn-tests--ask
                  `(progn
                     (defvar drawn-answer nil)
                     (setq drawn-answer nil)
                     (run-at-time 0 nil (lambda ()
                                          (setq drawn-answer
                                                (condition-case problem
                                                    (list (contexture--y-or-n-p ,question))
                                                  (error (error-message-string problem))))))
                     t)))))
      (dolist (count '(1 20 80 100))
        (let ((question (concat "/ssh:host:/" (contexture-drawn-tests--lines "q" 1 1 count) "? ")))
          (setq contexture-drawn-tests--screens nil)
          (funcall ask (string-replace "\n" "" question))
          (llm-ert-wait-for (contexture-drawn-tests--ask
                             '(and (or drawn-answer (active-minibuffer-window)) t)))
          (contexture-drawn-tests--look)
          (should-not (contexture-drawn-tests--ask 'drawn-answer))
          (dolist (word (contexture-drawn-tests--words question))
            (should (string-search word (car contexture-drawn-tests--screens))))
          (contexture-drawn-tests--type "y")
          (llm-ert-wait-for (contexture-drawn-tests--ask '(equal drawn-answer '(t))))))
      (funcall ask (make-string 4000 ?x))
      (llm-ert-wait-for (contexture-drawn-tests--ask
                         '(and (stringp drawn-answer)
                               (string-search "has no room" drawn-answer)))))))

;; Emacs would show the host after the folder.
(ert-deftest contexture-drawn-questions-are-shown-in-order ()
  (contexture-drawn-tests--with
    (let ((name "/ssh:root@\u05d0\u05d1:1.2.3.4:/etc/x")
          (ask (lambda (form)
                 (contexture-drawn-tests--ask
                  `(progn
                     (run-at-time 0 nil (lambda () (ignore-errors ,form)))
                     t)))))
      (dolist (form `((contexture--visit-outside ,name)
                      (contexture-conversation--read-decision
                       (contexture-conversation--make-approval :tool "t" :text ,name))))
        (funcall ask form)
        (llm-ert-wait-for (contexture-drawn-tests--ask '(and (active-minibuffer-window) t)))
        (contexture-drawn-tests--look)
        (should (string-search name (car contexture-drawn-tests--screens)))
        (contexture-drawn-tests--type "n")
        (llm-ert-wait-for (contexture-drawn-tests--ask '(not (active-minibuffer-window)))))
      (funcall ask `(contexture-trust--decide ,name nil))
      (llm-ert-wait-for
        (string-search name (progn (contexture-drawn-tests--look)
                                   (car contexture-drawn-tests--screens))))
      (contexture-drawn-tests--type "n")
      ;; Elsewhere, text in such scripts is shown as it should be.
      (funcall ask '(read-string "\u05d0 1: "))
      (llm-ert-wait-for (contexture-drawn-tests--ask '(and (active-minibuffer-window) t)))
      (contexture-drawn-tests--look)
      (should-not (string-search "\u05d0 1: " (car contexture-drawn-tests--screens)))
      (contexture-drawn-tests--type "Enter"))))

;; Emacs takes long to draw a line of many such letters.
(ert-deftest contexture-drawn-long-texts-of-a-server-hold-nobody ()
  (contexture-drawn-tests--with
    (let ((long (apply #'concat (make-list 5000 "\u05d0\u05d1\u05d2 "))))
      (dolist (form
               `((progn
                   (switch-to-buffer contexture-sessions-buffer)
                   (contexture-sessions-mode)
                   (dotimes (number 50)
                     (puthash number (list :id number :session ,long :agent ,long :branch ,long
                                           :last-words ,long :updated 1 :tokens 1)
                              contexture-sessions--all))
                   (contexture-sessions--show))
                 (contexture-conversations--show-summary ,long)))
        (let ((seconds (contexture-drawn-tests--ask
                        `(progn (delete-other-windows)
                                ,form
                                (let ((begun (float-time)))
                                  (redisplay t)
                                  (- (float-time) begun))))))
          (should-not (and (> seconds (llm-ert--patience)) (list seconds form))))))))

;;;; Keys

(defmacro contexture-drawn-tests--key-decides (key show decided)
  "Check when KEY, as Emacs names it, decides on what the form SHOW shows.
DECIDED is a form that returns non-nil then; both run in the Emacs that draws."
  `(progn
     ;; Typed before anything is drawn, when it is drawn, and just after that.
     (dolist (wait '(nil 0 0.1))
       (contexture-drawn-tests--ask
        `(let ((type (lambda ()
                       (setq unread-command-events
                             (append unread-command-events
                                     (listify-key-sequence (kbd ,,key)))))))
           (message nil)
           ,',show
           (if (null ,wait) (funcall type)
             (redisplay t)
             (run-at-time ,wait nil type))
           t))
       (llm-ert-wait-for (contexture-drawn-tests--ask
                          '(and (with-current-buffer (messages-buffer)
                                  (save-excursion
                                    (goto-char (point-max))
                                    (search-backward "has only just come" nil t)))
                                (null unread-command-events)))
         :timeout 5
         :message (lambda ()
                    (list ,key "typed after" wait
                          (contexture-drawn-tests--tmux "capture-pane" "-p")
                          (contexture-drawn-tests--ask
                           '(with-current-buffer (messages-buffer) (buffer-string))))))
       (should-not (contexture-drawn-tests--ask ',decided))
       (contexture-drawn-tests--ask
        '(with-current-buffer (messages-buffer)
           (let ((inhibit-read-only t)) (erase-buffer) t))))
     (sleep-for 1)
     (apply #'contexture-drawn-tests--type (split-string ,key))
     (llm-ert-wait-for (contexture-drawn-tests--ask ',decided))
     (should-not (contexture-drawn-tests--ask '(bound-and-true-p drawn-asked)))))

(ert-deftest contexture-drawn-keys-decide-on-nothing-that-was-not-shown ()
  (contexture-drawn-tests--with
    (contexture-drawn-tests--ask
     '(progn
        (advice-add 'contexture--y-or-n-p :override (lambda (prompt) (ignore (setq drawn-asked prompt))))
        (defvar drawn-asked nil)
        (defvar drawn-decided nil)
        (write-region "one\ntwo\n" nil "a.txt" nil 'silent)
        (find-file "a.txt")
        (redisplay t)
        t))
    (dolist (key '("C-c C-c" "C-c C-a"))
      (eval `(contexture-drawn-tests--key-decides
              ,key
              (progn
                (mapc #'contexture-review--end contexture-review--all)
                (contexture-review--show (contexture-review--begin (point-min) (point-max))
                                         "new\ntwo\n" t))
              (when (string-search "new\n" (buffer-string))
                (primitive-undo 1 buffer-undo-list)
                (erase-buffer)
                (insert "one\ntwo\n")
                t))
            t))
    ;; Twice by mistake: there is another change.
    (contexture-drawn-tests--ask
     '(progn
        (erase-buffer)
        (insert "one\ntwo\nthree\n")
        (contexture-review--show (contexture-review--begin 1 5) "ONE\n" t)
        (contexture-review--show (contexture-review--begin 5 9) "TWO\n" t)
        (goto-char 1)
        t))
    (sleep-for 1.5)
    (contexture-drawn-tests--ask
     '(ignore (setq unread-command-events (listify-key-sequence (kbd "C-c C-c C-c C-c")))))
    (llm-ert-wait-for (contexture-drawn-tests--ask '(string-search "ONE" (buffer-string))))
    (sleep-for 0.3)
    (should (equal (contexture-drawn-tests--ask '(buffer-string)) "ONE\ntwo\nthree\n"))
    (contexture-drawn-tests--ask '(ignore (contexture-review--end (car contexture-review--all))))
    ;; The request of a model.
    (contexture-drawn-tests--ask
     '(progn
        (defun contexture-conversation--request (_ params &rest _)
          (setq drawn-decided (plist-get params :decision)))
        (defun contexture-conversation--draw-header ())
        (switch-to-buffer "talk")
        t))
    (contexture-drawn-tests--key-decides
     "y"
     (let ((approval (contexture-conversation--make-approval
                      :number 1 :tool "add_file" :text "add" :arguments "{\"path\": \"a.txt\"}")))
       (setq drawn-decided nil
             contexture-conversation--input (copy-marker 1)
             contexture--appeared nil
             contexture-conversation--approvals (list approval))
       (let ((inhibit-read-only t))
         (erase-buffer)
         (insert (contexture-conversation--approval-block approval)))
       (setf (contexture-conversation--approval-from approval) (copy-marker 1)
             (contexture-conversation--approval-to approval) (copy-marker (point-max)))
       (goto-char 1)
       (contexture--watch-shown #'contexture-conversation--note-approvals))
     (eq drawn-decided :once))
    ;; The question about an agent's call.
    (contexture-drawn-tests--key-decides
     "y"
     (progn
       (setq drawn-decided nil)
       (advice-add 'contexture-tools--run :override (lambda (_) (setq drawn-decided t)))
       (contexture-tools--ask
        (contexture-tools--make-call
         :number 1 :values '("x") :agent "a"
         :tool (contexture-tools--make-tool :name "t" :arguments '((to "")))))
       (select-window (get-buffer-window (car (cl-remove-if-not
                                               (lambda (it)
                                                 (buffer-local-value 'contexture-tools--asked it))
                                               (buffer-list))))))
     drawn-decided)))

(provide 'contexture-drawn-tests)
;;; contexture-drawn-tests.el ends here
