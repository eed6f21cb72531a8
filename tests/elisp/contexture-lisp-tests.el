;;; contexture-lisp-tests.el --- Tests of what SLIME and SLY know  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Without a client, that nothing breaks.  With one, contexture-lisp-real
;; in an Emacs of its own: SLIME where Debian has it, SLY in the checkout
;; that SLY_DIR names, both with SBCL.

;;; Code:

(require 'checkdoc)
(require 'contexture-test-helper)
(require 'contexture-lisp)
(require 'contexture-menu)

(defvar sldb-condition)
(defvar sldb-restarts)

(ert-deftest contexture-lisp-does-without-clients ()
  (should-not (featurep 'slime))
  (should-not (featurep 'sly))
  (should-not (contexture-lisp-connected-p))
  (should-not (contexture-menu--lisp-p))
  (contexture-test-user-error "Neither SLIME nor SLY" (contexture-lisp-add-symbol))
  (contexture-test-user-error "SLIME is not connected to a Lisp; M-x slime starts one"
    (contexture-slime-add-symbol "car"))
  (contexture-test-user-error "SLY is not connected" (contexture-sly-add-history 1)))

(ert-deftest contexture-lisp-modes-say-that-a-client-is-missing ()
  (let ((load-path (cl-remove-if (lambda (folder) (string-match-p "slime\\|sly" folder))
                                 load-path)))
    (contexture-test-user-error "SLIME is not installed" (contexture-slime-mode 1))
    (should-not contexture-slime-mode)
    (contexture-test-user-error "SLY is not installed" (contexture-sly-mode 1))
    (should-not contexture-sly-mode)))

(ert-deftest contexture-lisp-takes-only-plain-data-from-an-image ()
  "Emacs would evaluate what an image says as it shows that, and call such lists."
  (let* ((evil "contexture-lisp-tests-evil")
         (client (contexture-lisp--new-client (intern evil) "Evil" "swank"))
         (text (propertize "x" 'display '(when (error "ran") . "y")))
         got)
    (cl-letf (((symbol-function (intern (concat evil "-dispatch-event")))
               (lambda (event _)
                 (funcall (nth 4 event)
                          (list :ok (list text (vector text) 'lambda (cons 'closure text))))))
              ((symbol-function (intern (concat evil "-lisp-implementation-type")))
               (lambda (_) (concat text "\nfile:\u202e")))
              ((symbol-function (intern (concat evil "-lisp-implementation-version")))
               (lambda (_) text)))
      (contexture-lisp--ask client 'send nil '(x) "P" t (lambda (result) (setq got result)))
      (should (equal-including-properties got '(:ok ("x" ["x"] "lambda" ("closure" . "x")))))
      (let ((name (contexture-lisp--implementation client nil)))
        (should-not (text-property-not-all 0 (length name) 'display nil name))
        (should (string-search "file:" name))
        (should-not (string-match-p "[\n\u202e]" name))))))

;; They come out of a macro, where checkdoc does not see them.
(ert-deftest contexture-lisp-commands-of-both-clients-are-whole ()
  (let (findings)
    (dolist (feature '(slime sly))
      (dolist (what '(add-symbol add-history add-error add-inspector add-note))
        (let* ((command (intern (format "contexture-%s-%s" feature what)))
               (checkdoc-create-error-function
                (lambda (text &rest _) (push (cons command text) findings) nil))
               (checkdoc-autofix-flag 'never)
               (checkdoc-arguments-in-order-flag nil)
               (checkdoc-verb-check-experimental-flag nil)
               (inhibit-message t))
          (should (commandp command))
          (should-not (string-search "%" (documentation command t)))
          (with-temp-buffer
            (emacs-lisp-mode)
            (insert (format "(defun %s %s\n  %s\n  (interactive)\n  nil)\n" command
                            (or (help-function-arglist command t) "()")
                            (prin1-to-string
                             (help-split-fundoc (documentation command t) command 'doc))))
            (goto-char (point-min))
            (checkdoc-defun t)))))
    (should-not findings)))

(ert-deftest contexture-lisp-commands-have-one-key-everywhere ()
  (dolist (feature '(slime sly lisp))
    (let ((map (symbol-value (intern (format "contexture-%s-map" feature)))))
      (pcase-dolist (`(,key . ,what) '(("s" . add-symbol) ("h" . add-history) ("e" . add-error)
                                       ("i" . add-inspector) ("n" . add-note)))
        (should (eq (lookup-key map key)
                    (intern (format "contexture-%s-%s" feature what))))))))

(ert-deftest contexture-lisp-commands-are-autoloaded ()
  (let ((commands '("add-symbol" "add-history" "add-error" "add-inspector" "add-note")))
    (with-temp-buffer
      (insert-file-contents (locate-library "contexture-lisp.el"))
      (dolist (feature '("slime" "sly"))
        (dolist (what commands)
          (should (save-excursion
                    (search-forward
                     (format ";;;###autoload (autoload 'contexture-%s-%s \"contexture-lisp\" nil t)"
                             feature what)
                     nil t))))))))

;;;; What is taken, without an image

(ert-deftest contexture-lisp-a-long-condition-says-what-was-cut ()
  (let* ((long (make-string 70000 ?x))
         (sldb-condition (list long "   [SIMPLE-ERROR]" nil))
         (sldb-restarts (list (list "ABORT" long))))
    (with-temp-buffer
      (setq major-mode 'sldb-mode)
      (let* ((facts (contexture-lisp--debugger-facts))
             (frames (contexture-lisp--prune (list (list 0 long))))
             (text (contexture-lisp--error-text facts frames nil)))
        (should (string-search "[the first 4000 of 70000 characters]"
                               (plist-get facts :message)))
        (should (< (length text) 15000))))))

(ert-deftest contexture-lisp-text-of-the-image-is-in-no-file ()
  (contexture-lisp--with-visits
    (let ((place (contexture-lisp--at-location
                  (contexture-lisp-tests--client)
                  '(:location (:source-form "(defun f (x) x)") (:position 1) nil)
                  #'contexture-lisp--place-here)))
      (should (equal (plist-get place :source) "(defun f (x) x)"))
      (should-not (plist-get place :file))
      (should-not (plist-get place :line))))
  (contexture-lisp--with-visits
    (let ((params (contexture-lisp--capture
                   (contexture-lisp-tests--client) "f"
                   '(:location (:source-form "(defun f (x) x)") (:position 1) nil)
                   '(:lisp "SBCL"))))
      (should (equal (plist-get params :content) "(defun f (x) x)"))
      (dolist (key '(:buffer :filename :start-line))
        (should-not (plist-get (plist-get params :metadata) key))))))

(defun contexture-lisp-tests--client ()
  "Return a client whose locations are positions."
  (contexture-lisp--make-client :offset (lambda (location) (cadr (nth 2 location)))
                                :note-property 'a-note))

(ert-deftest contexture-lisp-all-notes-at-a-place-come-the-worst-first ()
  (with-temp-buffer
    (insert "(defun odd (x)\n  (+ x y z))\n")
    (let ((client (contexture-lisp-tests--client)))
      (dolist (severity '(:note :error :style-warning))
        (overlay-put (make-overlay 3 20) 'a-note
                     (list :severity severity :message (format "%s" severity))))
      (overlay-put (make-overlay 1 20) 'a-note '(:severity :error :message "outer"))
      (dolist (range '((3 . 4) (10 . 11)))
        (should (equal (mapcar (lambda (overlay)
                                 (plist-get (overlay-get overlay 'a-note) :severity))
                               (contexture-lisp--notes client (car range) (cdr range)))
                       '(:error :style-warning :note)))))))

(ert-deftest contexture-lisp-what-an-inspector-offers-to-do-is-no-text ()
  (define-button-type 'sly-action)
  (define-button-type 'contexture-lisp-tests-part)
  (with-temp-buffer
    (insert "A hash table\n"
            (propertize "[clear]" 'slime-action-number 1) "\n"
            "k = " (propertize "42" 'slime-part-number 2) " "
            (propertize "[remove]" 'slime-action-number 3) "\n")
    (insert-text-button "part" 'type 'contexture-lisp-tests-part)
    (insert-text-button " [--more--]" 'type 'sly-action)
    (insert (propertize " [--more--]" 'slime-range-button t))
    (should (equal (contexture-lisp--without-buttons)
                   "A hash table\n\nk = 42\npart"))))

(ert-deftest contexture-lisp-all-definitions-of-a-symbol-can-be-chosen ()
  (let ((found '(("(area circle)" :content "a") ("(area square)" :content "b"))))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ choices &rest _)
                 (should (member contexture-lisp--all choices))
                 contexture-lisp--all)))
      (should (equal (contexture-lisp--choose found) '((:content "a") (:content "b")))))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "(area square)")))
      (should (equal (contexture-lisp--choose found) '((:content "b")))))
    (should (equal (contexture-lisp--choose (list (car found))) '((:content "a"))))))

(ert-deftest contexture-lisp-what-goes-wrong-while-a-tool-starts-is-its-result ()
  (require 'contexture-tools)
  (dolist (answer '((:ok :missing) (:ok (:ok "3" ""))))
    (let* ((results nil) (then nil)
           (client (contexture-lisp--make-client
                    :prefix "slynk" :send (lambda (_ _ _ _ continuation)
                                            (setq then continuation))))
           (contexture-tools-lisp--source "/nonexistent/contexture-tools.lisp")
           (call (contexture-tools-lisp--make-call
                  :number 1 :client client :timer (run-at-time 1000 nil #'ignore)
                  :done (lambda (text &optional problem)
                          (when text (error "No place for %s" text))
                          (push problem results))))
           (contexture-tools-lisp--calls (list call)))
      (contexture-tools-lisp--send call)
      (funcall then answer)
      (llm-ert-wait-for results)
      (should (equal (length results) 1))
      (should (string-match-p "nonexistent\\|No place for 3" (car results)))
      (should-not contexture-tools-lisp--calls))))

(ert-deftest contexture-lisp-the-client-in-the-manual-works ()
  (unless (executable-find "sbcl") (ert-skip "There is no sbcl"))
  (llm-ert-with-files
      `(("client.lisp"
         . ,(with-temp-buffer
              (insert-file-contents (expand-file-name "docs/contexture.texi"
                                                      contexture-test-root))
              (re-search-forward "^@lisp\n\\((require :asdf)\n\\(?:.*\n\\)+?\\)@end lisp")
              (replace-regexp-in-string "@\\([@{}]\\)" "\\1" (match-string 1))))
        ("bin/"))
    (make-symbolic-link contexture-test-binary "bin/contexture")
    (let ((process-environment
           (append (list (concat "PATH=" llm-ert-directory "bin:" (getenv "PATH"))
                         (concat "HOME=" llm-ert-directory) "LANG=C.UTF-8" "LC_ALL=C.UTF-8"
                         "XDG_STATE_HOME" "XDG_CONFIG_HOME" "XDG_CACHE_HOME" "XDG_RUNTIME_DIR")
                   process-environment)))
      (with-temp-buffer
        (call-process "sbcl" nil t nil "--noinform" "--non-interactive" "--no-userinit"
                      "--load" "client.lisp")
        (should (string-search "\"one \\\"λ\\\"\ntwo \\\\ three\"" (buffer-string)))))))

(defun contexture-lisp-tests--slime ()
  "Return the folder in which Debian's package has SLIME, or nil."
  (car (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/slime-[0-9]*")))

(defun contexture-lisp-tests--run (client folder &optional file)
  "Run FILE, contexture-lisp-real by default, with CLIENT, which is in FOLDER."
  (unless (executable-find "sbcl")
    (ert-skip "There is no sbcl"))
  (let* ((own (make-temp-file "contexture-lisp" t)) ; the Lisp's files, too
         (process-environment `(,(concat "LISP_CLIENT=" client) ,(concat "TMPDIR=" own)
                                ,@process-environment))
         (folders (append (list folder (expand-file-name "contrib" folder))
                          (mapcar (lambda (library)
                                    (file-name-directory (locate-library library)))
                                  '("contexture" "contexture-test-helper")))))
    (unwind-protect
        (with-temp-buffer
          (unless (equal 0 (apply #'call-process
                                  (expand-file-name invocation-name invocation-directory)
                                  nil t nil "-Q" "--batch"
                                  `(,@(cl-loop for folder in folders
                                               append (list "-L" folder))
                                    "-l" ,(or file "contexture-lisp-real")
                                    "--eval" ,(format "(ert-run-tests-batch-and-exit %S)"
                                                      (concat "^" (or file "contexture-lisp-real"))))))
            (ert-fail (buffer-string))))
      (delete-directory own t))))

(defun contexture-lisp-tests--run-slime (&optional file)
  "Run FILE with SLIME."
  (contexture-test-use-clients "SLIME and SBCL (Debian: slime, cl-swank, sbcl)"
                               (and (contexture-lisp-tests--slime) (executable-find "sbcl")))
  (contexture-lisp-tests--run "slime" (contexture-lisp-tests--slime) file))

(defun contexture-lisp-tests--run-sly (&optional file)
  "Run FILE with SLY."
  (contexture-lisp-tests--run
   "sly" (or (getenv "SLY_DIR")
             (ert-skip "SLY_DIR names no checkout of SLY"))
   file))

(ert-deftest contexture-lisp-works-with-slime-itself ()
  (contexture-lisp-tests--run-slime))

(ert-deftest contexture-lisp-works-with-sly-itself ()
  (contexture-lisp-tests--run-sly))

;; With keys, a screen, and a model that says what is written: connecting,
;; streaming, completing, interrupting, quitting and connecting again.
(ert-deftest contexture-lisp-plays-slime-in-a-terminal ()
  (contexture-test-use-clients "SLIME, SBCL and tmux (Debian: slime, cl-swank, sbcl, tmux)"
                               (and (contexture-lisp-tests--slime) (executable-find "sbcl")
                                    (executable-find "tmux")))
  (llm-ert-with-files nil
    (let ((script (expand-file-name "scripts/screens-slime" contexture-test-root))
          (process-environment (cons (concat "CONTEXTURE_BIN=" contexture-test-binary)
                                     process-environment)))
      (with-temp-buffer
        (unless (equal 0 (call-process script nil t nil llm-ert-directory))
          (ert-fail (buffer-string)))))))

(provide 'contexture-lisp-tests)
;;; contexture-lisp-tests.el ends here
